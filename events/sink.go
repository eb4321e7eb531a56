package events

import "time"

// State is the freshness of a source.
type State uint8

const (
	// StateUnknown: nothing was ever heard.
	StateUnknown State = iota
	// StateConnecting: no connection yet, or it was lost and is being made again.
	StateConnecting
	// StateReplaying: missing batches are being fetched.
	StateReplaying
	// StateLive: every batch of the stream so far was applied.
	StateLive
	// StateGap: batches were lost and could not be fetched.
	StateGap
	// StateStale: nothing was heard for longer than the stated time, or the connection is down that long.
	StateStale
)

var stateNames = [...]string{"unknown", "connecting", "replaying", "live", "gap", "stale"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Sink takes what a stream delivers. Its methods are called from one goroutine per source, in order.
type Sink interface {
	// Apply takes the next payload: in order, exactly once. The slice is the callee's only until it returns.
	Apply(seq uint64, payload []byte, received time.Time)
	// Reset says that the engine process started again, so everything it held is gone. Numbers start anew.
	Reset()
	// Joined says with which number the stream starts for us, after connecting, a Reset or a Gap. complete means that
	// nothing came before it: every block that the engine holds will have been announced.
	Joined(first uint64, complete bool)
	// Gap says that batches from..to are lost for good.
	Gap(from, to uint64)
	// State tells a change of state; why is nil or the error behind it.
	State(s State, why error)
	// Reject counts something that was not applied.
	Reject(r Reason)
	// Replayed counts batches fetched by replay.
	Replayed(n int)
}
