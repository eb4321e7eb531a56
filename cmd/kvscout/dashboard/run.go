package dashboard

import (
	"context"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Options say what is shown and where it comes from.
type Options struct {
	// Server is the address that the title shows.
	Server string
	// Interval between answers; 0 is 1 s.
	Interval time.Duration
	// Timeout is how much later than the interval an answer may be before the stream is begun anew; 0 is 10 s.
	Timeout time.Duration
	// Stream brings the answers.
	Stream Stream
	// Detail asks for more of one source; nil shows the counters only.
	Detail func(worker string, rank uint32) (Detail, error)
}

func (o Options) withDefaults() Options {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	return o
}

// Run shows the view in the terminal of in and out until the user or ctx ends it.
func Run(ctx context.Context, opts Options, in io.Reader, out io.Writer) error {
	opts = opts.withDefaults()
	p := tea.NewProgram(NewModel(opts, time.Now()), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { follow(ctx, opts, func(msg any) { p.Send(msg) }) }) // ended by cancel, waited for below
	stop := context.AfterFunc(ctx, p.Quit)                             // a signal is as a key
	defer func() {
		stop()
		cancel()
		wg.Wait()
	}()
	_, err := p.Run()
	return err
}

// Once writes one view of everything as plain text, w cells wide: what came with the second answer, so that it has rates.
// It errs if an answer does not come in time.
func Once(ctx context.Context, opts Options, out io.Writer, w int) error {
	opts = opts.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var s *sample
	answers := 0
	err := streamOnce(ctx, opts, func(stats *kvscoutv1.Stats) {
		if answers++; answers > 2 {
			return
		}
		if s = next(s, stats, time.Now()); answers == 2 {
			cancel()
		}
	})
	if answers < 2 {
		return err
	}
	_, err = io.WriteString(out, everything(opts, s, w))
	return err
}
