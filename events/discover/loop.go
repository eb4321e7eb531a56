package discover

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/kvscout/kvscout/events"
)

// loop is the state of a running discovery. All of it belongs to the goroutine of Run.
type loop struct {
	o      Options
	wg     *sync.WaitGroup // of the questioners
	news   chan news
	board  board
	status []Status
	// heard says which discoverers have reported or failed once. Until all have, nothing is applied: half the list would
	// take the other half's workers out.
	heard []bool
	asked map[string]*asked // by worker
	ill   map[string]string // by worker of last: what Health was told, "" is not kept

	asks, askFails uint64
	last           Update
	applied        bool
}

// asked is a worker that is asked about itself.
type asked struct {
	url    string
	cancel context.CancelFunc
	// answer is all that it has told so far; done says whether any question has ended, err how the last one did.
	answer Worker
	done   bool
	err    error
	// ill is what its serving port says of its health.
	ill error
	// known is what answer began with, that of the worker's description.
	known *Worker
}

func newLoop(o Options, wg *sync.WaitGroup) *loop {
	l := &loop{
		o: o, wg: wg, news: make(chan news, 256), asked: make(map[string]*asked), ill: make(map[string]string),
		status: make([]Status, len(o.Discoverers)), heard: make([]bool, len(o.Discoverers)),
	}
	l.board.says = make([][]Worker, len(o.Discoverers))
	for i, d := range o.Discoverers {
		l.status[i].Name = d.Name()
	}
	return l
}

func (l *loop) run(ctx context.Context) {
	for {
		l.apply(ctx)
		l.tellHealth()
		select {
		case <-ctx.Done():
			return
		case n := <-l.news:
			l.take(ctx, n)
			l.drain(ctx)
		}
	}
}

// drain takes what has come meanwhile, so that many answers at once are one change.
func (l *loop) drain(ctx context.Context) {
	for range cap(l.news) {
		select {
		case n := <-l.news:
			l.take(ctx, n)
		default:
			return
		}
	}
}

func (l *loop) take(ctx context.Context, n news) {
	if n.from < 0 {
		l.answered(n)
		return
	}
	s := &l.status[n.from]
	l.heard[n.from] = true
	if n.err == nil {
		n.err = check(n.workers)
	}
	if n.err != nil {
		s.Failures++
		s.Err = n.err.Error()
		l.o.Logger.WarnContext(ctx, "discovery failed; what was known stays", "discoverer", s.Name, "error", n.err)
		return
	}
	s.Reports++
	s.Err = ""
	s.Workers = len(n.workers)
	l.board.says[n.from] = n.workers
}

// answered takes what a worker said of itself, unless it is no longer asked there.
func (l *loop) answered(n news) {
	a := l.asked[n.worker]
	if a == nil || a.url != n.url {
		return
	}
	if n.health {
		a.ill = n.err
		return
	}
	l.asks++
	a.done, a.err = true, n.err
	if n.answer == nil {
		l.askFails++
		return
	}
	a.answer = n.answer.fill(a.answer) // invariant 3
}

// apply tells the state if it changed, and asks the workers that are to be asked.
func (l *loop) apply(ctx context.Context) {
	for _, heard := range l.heard {
		if !heard {
			return
		}
	}
	u := Update{Discoverers: append([]Status(nil), l.status...)}
	named := make(map[string]bool)
	for _, w := range l.board.merged() {
		named[w.ID] = true
		a := l.ask(ctx, w)
		if a != nil {
			w = w.fill(a.answer)
		}
		switch missing := w.finish(); {
		case a != nil && !a.done:
			// It is not described twice when its first answer is about to come.
			u.Pending = append(u.Pending, Pending{w.ID, "the worker is being asked"})
		case missing != "":
			if a != nil && a.err != nil {
				missing += ": " + a.err.Error()
			}
			u.Pending = append(u.Pending, Pending{w.ID, missing})
		default:
			u.Workers = append(u.Workers, w)
		}
	}
	for id, a := range l.asked {
		if !named[id] {
			a.cancel()
			delete(l.asked, id)
		}
	}
	u.Asked, u.AskFailed = l.asks, l.askFails
	if l.applied && reflect.DeepEqual(u, l.last) {
		return
	}
	l.last, l.applied = u, true
	l.o.Apply(u)
}

// tellHealth tells what is wrong with the workers that can be listened to, where that changed. What an orchestrator says
// goes before what the worker's port says.
func (l *loop) tellHealth() {
	if l.o.Health == nil {
		return
	}
	ill := make(map[string]string)
	for _, w := range l.last.Workers {
		var err error
		if w.Unready != "" {
			err = errors.New(w.Unready)
		} else if a := l.asked[w.ID]; a != nil {
			err = a.ill
		}
		if err != nil {
			ill[w.ID] = err.Error()
		}
		if ill[w.ID] != l.ill[w.ID] {
			l.o.Health(w.ID, err)
		}
	}
	l.ill = ill
}

// ask starts to ask w, if it has a URL and is not asked there yet; nil if it is not asked.
func (l *loop) ask(ctx context.Context, w Worker) *asked {
	a := l.asked[w.ID]
	if a != nil && a.url == w.URL && a.known == w.Known {
		return a
	}
	if a != nil {
		a.cancel()
		delete(l.asked, w.ID) // with its health: what failed there says nothing of where it is now
	}
	if l.o.Asker == nil || w.URL == "" {
		return nil
	}
	a = &asked{url: w.URL, known: w.Known}
	if w.Known != nil {
		a.answer, a.done = *w.Known, true
	}
	ctx, a.cancel = context.WithCancel(ctx)
	l.asked[w.ID] = a
	engine := engineOf(w)
	l.wg.Go(func() { l.o.Asker.follow(ctx, w.ID, w.URL, engine, l.news) }) // ended by a.cancel; Run waits for it
	return a
}

// engineOf is the engine that is stated of w, "" if none is.
func engineOf(w Worker) events.Engine {
	if len(w.Sources) == 0 {
		return ""
	}
	return w.Sources[0].Engine
}
