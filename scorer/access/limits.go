package access

import (
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// maxRemembered bounds the callers whose calls are counted apart.
const maxRemembered = 4096

// Limits bounds the calls of all callers and of each. Zero is no bound.
type Limits struct {
	// Calls is how many of routers may be under way, and how many others beside them, so that neither keep the other out;
	// CallsPerCaller is how many of one caller, of both kinds. A stream is one call.
	Calls, CallsPerCaller int
	// Rate is how many calls, and messages of streams, of one caller begin in a second; as many may begin at once.
	Rate float64
	// Connections is how many may be open.
	Connections int
}

// perCaller says whether callers are counted apart.
func (l Limits) perCaller() bool { return l.CallsPerCaller > 0 || l.Rate > 0 }

// callerKey tells callers apart: by name, or by address if they have none. The zero value is who has neither, as at the
// other end of a Unix socket.
type callerKey struct {
	name string
	addr netip.Addr
}

// addressKey is the caller at an address: a host of IPv4, a network of 64 bits of IPv6, in which a host has as many
// addresses as it likes.
func addressKey(remote string) callerKey {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return callerKey{}
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			addr = p.Addr()
		}
	}
	return callerKey{addr: addr}
}

// caller is what is counted of one.
type caller struct {
	calls atomic.Int64
	rate  *rate.Limiter // nil without a limit
}

// crowd holds the callers that are remembered, those seen last.
type crowd struct {
	limits Limits
	calls  [classes]atomic.Int64 // of all callers
	known  *lru.Cache[callerKey, *caller]

	connections atomic.Int64
}

func newCrowd(l Limits) *crowd {
	known, err := lru.New[callerKey, *caller](maxRemembered)
	if err != nil { // only for a size that is not positive
		panic(err)
	}
	return &crowd{limits: l, known: known}
}

// caller is the one of a key.
func (c *crowd) caller(key callerKey) *caller {
	if have, ok := c.known.Get(key); ok {
		return have
	}
	made := new(caller)
	if c.limits.Rate > 0 {
		made.rate = rate.NewLimiter(rate.Limit(c.limits.Rate), int(math.Ceil(c.limits.Rate)))
	}
	if have, ok, _ := c.known.PeekOrAdd(key, made); ok {
		return have
	}
	return made
}

// enter lets a call in, which must leave, or says why not. who is nil when callers are not counted apart.
func (c *crowd) enter(of class, key callerKey) (who *caller, refused *indexrpc.Error) {
	if n := c.calls[of].Add(1); c.limits.Calls > 0 && n > int64(c.limits.Calls) {
		c.calls[of].Add(-1)
		return nil, indexrpc.Overloaded("%d calls are under way", c.limits.Calls)
	}
	if !c.limits.perCaller() {
		return nil, nil
	}
	who = c.caller(key)
	if n := who.calls.Add(1); c.limits.CallsPerCaller > 0 && n > int64(c.limits.CallsPerCaller) {
		c.leave(of, who)
		return nil, indexrpc.Overloaded("%d calls of this caller are under way", c.limits.CallsPerCaller)
	}
	if wait := who.wait(time.Now()); wait > 0 {
		c.leave(of, who)
		refused = indexrpc.Failf(indexrpc.ReasonRateLimited, "more than %g calls a second", c.limits.Rate)
		refused.RetryAfter = wait
		return nil, refused
	}
	return who, nil
}

func (c *crowd) leave(of class, who *caller) {
	c.calls[of].Add(-1)
	if who != nil {
		who.calls.Add(-1)
	}
}

// wait takes a call from the caller's rate and returns 0, or takes none and returns how long it is until there is one.
func (c *caller) wait(now time.Time) time.Duration {
	if c.rate == nil {
		return 0
	}
	r := c.rate.ReserveN(now, 1)
	d := r.DelayFrom(now)
	if d > 0 {
		r.CancelAt(now)
	}
	return d
}
