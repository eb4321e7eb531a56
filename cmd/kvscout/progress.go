package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressEvery is how often a log, which is no terminal, tells of progress.
const progressEvery = 5 * time.Second

// progress tells how far a command is: a bar on a terminal, else a line every few seconds.
type progress struct {
	w    io.Writer
	what string
	bar  *progressbar.ProgressBar // nil when w is no terminal
	next time.Time                // of the next line
}

func newProgress(w io.Writer, what string) *progress {
	p := &progress{w: w, what: what, next: time.Now().Add(progressEvery)}
	if isTerminal(w) {
		p.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

// show tells that done of size units are done; size 0 is not known.
func (p *progress) show(done, size int64) {
	if p.bar != nil {
		p.bar.ChangeMax64(max(size, done, 1))
		_ = p.bar.Set64(done) // a bar that cannot be drawn is no fault
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(progressEvery)
		if size > 0 {
			fmt.Fprintf(p.w, "kvscout: %s %.0f%%\n", p.what, 100*float64(done)/float64(size))
		} else {
			fmt.Fprintf(p.w, "kvscout: %s %d\n", p.what, done)
		}
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
