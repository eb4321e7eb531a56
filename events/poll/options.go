package poll

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kvscout/kvscout/events/discover"
)

// Defaults of Options.
const (
	DefaultInterval    = 10 * time.Millisecond
	DefaultMaxInterval = 100 * time.Millisecond
	// DefaultTimeout leaves room for engines that hold an empty answer back for 2 seconds (openai_server.py).
	DefaultTimeout    = 10 * time.Second
	DefaultStaleAfter = 30 * time.Second
	DefaultBackoffMax = 5 * time.Second
	DefaultMaxEvent   = 16 << 20
	DefaultMaxAnswer  = 1 << 30
)

var (
	// ErrOptions is a setting that cannot be used.
	ErrOptions = errors.New("bad poll options")
	// ErrTaken is an endpoint that another stream of this process polls: each would get a part of the events.
	ErrTaken = errors.New("endpoint is polled already")
	// ErrStatus is an answer with another status than 200.
	ErrStatus = errors.New("unexpected status")
	// ErrUnsure is the reason behind StateConnecting after a failed poll, until the next event.
	ErrUnsure = errors.New("a poll failed, perhaps with events in its answer, and no event came since")
)

// Options of a Poller. Zero means the default of that name.
type Options struct {
	// Interval is the pause after an answer with events, from which it grows by half with each empty one up to
	// MaxInterval.
	Interval, MaxInterval time.Duration
	// Timeout bounds one poll. It is never longer than StaleAfter.
	Timeout time.Duration
	// StaleAfter is the age of the last whole answer from which on the source is stale.
	StaleAfter time.Duration
	// BackoffMax bounds the pause after a poll that failed.
	BackoffMax time.Duration
	// MaxEvent and MaxAnswer bound one event and one answer, in bytes. An answer is never held as a whole.
	MaxEvent, MaxAnswer int
	// Policy says which addresses may be polled: whoever registers a worker names a URL that is asked again and again.
	Policy discover.Policy
	// Claims knows which endpoints are polled. Nil shares one registry in the process.
	Claims *Claims
	// Logger may be nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&o.Interval, DefaultInterval}, {&o.MaxInterval, DefaultMaxInterval}, {&o.Timeout, DefaultTimeout},
		{&o.StaleAfter, DefaultStaleAfter}, {&o.BackoffMax, DefaultBackoffMax},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	o.MaxInterval = max(o.MaxInterval, o.Interval)
	o.Timeout = min(o.Timeout, o.StaleAfter)
	if o.MaxEvent == 0 {
		o.MaxEvent = DefaultMaxEvent
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	if o.Claims == nil {
		o.Claims = processClaims
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports everything wrong with o, joined, each fault wrapping ErrOptions.
func (o Options) Validate() error {
	var faults []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"interval", int64(o.Interval)}, {"max interval", int64(o.MaxInterval)}, {"timeout", int64(o.Timeout)},
		{"stale after", int64(o.StaleAfter)}, {"backoff max", int64(o.BackoffMax)}, {"max event", int64(o.MaxEvent)},
		{"max answer", int64(o.MaxAnswer)},
	} {
		if f.value < 0 {
			faults = append(faults, fmt.Errorf("%w: %s is negative", ErrOptions, f.name))
		}
	}
	return errors.Join(faults...)
}

// Claims is a registry of the endpoints that are polled. The zero value is empty and may be used by several goroutines.
type Claims struct {
	mu    sync.Mutex // guards taken
	taken map[string]bool
}

var processClaims = new(Claims)

func (c *Claims) claim(url string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken[url] {
		return false
	}
	if c.taken == nil {
		c.taken = make(map[string]bool)
	}
	c.taken[url] = true
	return true
}

func (c *Claims) release(url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, url)
}
