package render

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// breaker keeps calls from a renderer that fails them all.
type breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	pause   time.Duration
	last    atomic.Pointer[Error] // the last fault counted
}

// errExcluded is an outcome that says nothing of the renderer's health.
var errExcluded = errors.New("says nothing of the renderer")

func newBreaker(after int, pause time.Duration) *breaker {
	return &breaker{pause: pause, circuit: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     pause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return int64(c.ConsecutiveFailures) >= int64(after) },
		IsExcluded:  func(err error) bool { return errors.Is(err, errExcluded) },
	})}
}

// allow errs with the last fault while the circuit is open. Else the outcome of the call goes to done; fair says whether
// the renderer had the time that it may take.
func (b *breaker) allow() (done func(err error, fair bool), err error) {
	report, err := b.circuit.Allow()
	if err != nil {
		if fault := b.fault(); fault != nil {
			return nil, fault
		}
		// Another call just tries whether the renderer is back.
		return nil, &Error{Reason: ReasonDown, Detail: "one call tries whether it is back", RetryAfter: b.pause}
	}
	return func(err error, fair bool) { report(b.judge(err, fair)) }, nil
}

// judge says what an outcome means: nil for a renderer that is well, though it may have refused the body.
func (b *breaker) judge(err error, fair bool) error {
	var failed *Error
	if err == nil || !errors.As(err, &failed) {
		if err != nil {
			return errExcluded // the caller cancelled
		}
		return nil
	}
	switch failed.Reason {
	case ReasonBadRequest, ReasonUnknownModel, ReasonUntrusted:
		return nil
	case ReasonTimeout:
		if !fair {
			return errExcluded
		}
	case ReasonDown, ReasonContract, ReasonNoRoute, ReasonUnauthorized, ReasonScaleOutDisabled:
	default:
		return errExcluded
	}
	b.last.Store(failed)
	return failed
}

// fault is nil unless the circuit is open: then what opened it.
func (b *breaker) fault() error {
	last := b.last.Load()
	if b.circuit.State() != gobreaker.StateOpen || last == nil {
		return nil
	}
	out := &Error{
		Reason: last.Reason, Status: last.Status, RetryAfter: b.pause,
		Detail: fmt.Sprintf("not asked, because it failed every call; it is tried again every %v", b.pause),
	}
	if out.Reason == ReasonTimeout { // nobody waited for this one
		out.Reason = ReasonDown
	}
	return out
}
