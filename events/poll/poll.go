package poll

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Poller is the life of one polled source.
type Poller struct {
	src    events.Source
	sink   events.Sink
	o      Options
	client *http.Client
	method string

	order events.BufferedOrder
	heard bool // an event, ever
	lossy bool // events of this life were lost
	// unsure holds the ranks of this life, and whether a poll failed since their last event: with events of the rank in
	// its answer, perhaps, or because the engine is gone.
	unsure map[int]bool

	answered time.Time // when the last whole answer ended, or Run began
	failure  error     // of the last poll; nil if it was answered
	state    events.State
	why      string
}

// New prepares a Poller. It errs with events.ErrSource or ErrOptions, joined.
func New(src events.Source, sink events.Sink, o Options) (*Poller, error) {
	faults := []error{src.Validate(), o.Validate()}
	if !src.Polled() {
		faults = append(faults, fmt.Errorf("%w: endpoint %q is not polled", events.ErrSource, src.Events))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("poll of %q: %w", src.ID(), err)
	}
	return &Poller{src: src, sink: sink, o: o.withDefaults(), method: http.MethodPost, unsure: make(map[int]bool)}, nil
}

// Resume makes the poller go on behind a cursor, where last has the number of each rank's last event. It is to be called
// before Run. Nothing proves that the engine is the one of the cursor: one that goes on with the next numbers may be
// another that has counted as far, which nobody but its first events could tell, and those are handed out once.
func (p *Poller) Resume(c events.Cursor, last []events.BufferedRank) {
	p.order.Resume(c.Seq, last)
	p.heard, p.lossy = true, c.Lossy
	for _, r := range last {
		p.unsure[r.Rank] = true
	}
}

// Run polls until ctx ends and returns ctx's error. It errs at once with ErrTaken. It must be called once.
func (p *Poller) Run(ctx context.Context) error {
	if !p.o.Claims.claim(p.src.Events) {
		return fmt.Errorf("%w: %s", ErrTaken, p.src.Events)
	}
	defer p.o.Claims.release(p.src.Events)
	dialer := &net.Dialer{Timeout: p.o.Timeout, Control: p.o.Policy.Control}
	transport := &http.Transport{
		DialContext:        dialer.DialContext,
		DisableCompression: true, // a small answer must not become a large one
		MaxConnsPerHost:    1,
		IdleConnTimeout:    p.o.StaleAfter,

		MaxResponseHeaderBytes: 64 << 10,
	}
	defer transport.CloseIdleConnections()
	p.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	p.answered = time.Now()
	p.tell(events.StateConnecting, nil)
	pause := p.o.Interval
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		n, err := p.poll(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.settle(err)
		pause = p.next(pause, n, err)
		timer.Reset(pause)
	}
}

// next is the pause before the next poll.
func (p *Poller) next(pause time.Duration, events int, err error) time.Duration {
	switch {
	case err != nil:
		return min(max(2*pause, p.o.MaxInterval), p.o.BackoffMax)
	case events > 0:
		return p.o.Interval
	default:
		return min(pause+pause/2, p.o.MaxInterval)
	}
}

// poll asks once and hands over the events of the answer, whose number it returns.
func (p *Poller) poll(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, p.method, p.src.Events, http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusMethodNotAllowed && p.method == http.MethodPost:
		p.method = http.MethodGet
		return 0, fmt.Errorf("%w: %s to POST, trying GET", ErrStatus, res.Status)
	case res.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("%w: %s", ErrStatus, res.Status)
	}
	return p.events(res.Body)
}

// events hands over the events of an answer.
func (p *Poller) events(body io.Reader) (n int, err error) {
	r := events.NewBufferedReader(body, p.o.MaxEvent, p.o.MaxAnswer)
	for {
		event, err := r.Next()
		switch {
		case err == io.EOF:
			return n, nil
		case errors.Is(err, events.ErrTooLarge):
			p.sink.Reject(events.ReasonTooLarge)
			p.doubt()
			continue
		case err != nil:
			return n, err
		}
		n++
		p.event(event)
	}
}

// event hands over one event, after telling what its number means.
func (p *Poller) event(event []byte) {
	id, empty, err := events.ParseBufferedID(event)
	switch {
	case empty:
		return
	case errors.Is(err, events.ErrNoEventID):
		p.sink.Reject(events.ReasonBadSequence)
		p.doubt()
		return
	case err != nil:
		p.sink.Reject(events.ReasonBadPayload)
		p.doubt()
		return
	}
	step, ok := p.order.Accept(id)
	if !ok {
		p.sink.Reject(events.ReasonRankUnknown)
		return
	}
	switch step.Step {
	case events.StepReset:
		p.lossy = false
		clear(p.unsure)
		p.sink.Reset()
		p.sink.Joined(step.Place, step.Whole)
	case events.StepFirst:
		p.sink.Joined(step.Place, step.Whole)
	case events.StepGap:
		p.lossy = true
		p.o.Logger.Warn("events lost", "source", p.src.ID(), "from", step.From, "to", step.Place-1)
		p.sink.Gap(step.From, step.Place-1)
		p.sink.Joined(step.Place, false)
	}
	p.unsure[id.Rank], p.heard = false, true
	if p.lossy {
		p.tell(events.StateGap, nil)
	} else if p.state != events.StateConnecting {
		p.tell(events.StateLive, nil)
	}
	p.sink.Apply(step.Place, event, time.Now())
}

// doubt notes that events may have been lost with an answer, or that another process answers now, until the next number
// of each rank shows what happened.
func (p *Poller) doubt() {
	for rank := range p.unsure {
		p.unsure[rank] = true
	}
}

// settle tells the state after a poll.
func (p *Poller) settle(err error) {
	if err == nil {
		p.answered = time.Now()
	} else {
		p.doubt()
	}
	if err != nil && p.failure == nil {
		p.o.Logger.Warn("poll failed", "source", p.src.ID(), "error", err)
	}
	p.failure = err
	p.tell(p.judge())
}

// judge derives the state.
func (p *Poller) judge() (events.State, error) {
	switch {
	case p.failure != nil && time.Since(p.answered) >= p.o.StaleAfter:
		return events.StateStale, p.failure
	case p.failure != nil:
		return events.StateConnecting, p.failure
	case p.lossy:
		return events.StateGap, nil
	case !p.heard:
		return events.StateUnknown, nil
	}
	for _, unsure := range p.unsure {
		if unsure {
			return events.StateConnecting, ErrUnsure
		}
	}
	return events.StateLive, nil
}

// tell tells a state that is new.
func (p *Poller) tell(s events.State, why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	if s == p.state && text == p.why {
		return
	}
	p.state, p.why = s, text
	p.sink.State(s, why)
}
