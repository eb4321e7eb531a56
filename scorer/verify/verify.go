package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/indexer"
)

// ErrUnknownSource is a message or request of a source that the recording never described.
var ErrUnknownSource = errors.New("source was not described")

// ErrOrder is a recording whose records are not in the order of time.
var ErrOrder = errors.New("recording is not in the order of time")

// ErrUnrendered is a body that Options.Render cannot render exactly. Its request is left out and counted.
var ErrUnrendered = errors.New("body cannot be rendered exactly")

// Report is the outcome of one recording. Requests = Equal + Over + Under.
type Report struct {
	File     string `json:"file"`
	Requests int    `json:"requests"`
	// Equal, Over and Under compare the number predicted with the engine's, bounds included.
	Equal int `json:"equal"`
	Over  int `json:"over"`
	Under int `json:"under"`
	// Bounds counts answers that were bounds and held.
	Bounds int `json:"bounds"`
	// Wrong counts exact answers that differ, and bounds that did not hold.
	Wrong   int     `json:"wrong"`
	Seconds float64 `json:"seconds"`
	// Torn says that the end of the file is missing; what came before was verified.
	Torn bool `json:"torn,omitempty"`
	// Bad counts records that could not be used. What a lost message leaves unknown shows in the bounds.
	Bad int `json:"bad,omitempty"`
	// Rendered counts the requests that were predicted from their bodies, Differing those of them whose tokens are not the
	// engine's; these are wrong, whatever was predicted.
	Rendered  int `json:"rendered,omitempty"`
	Differing int `json:"differing,omitempty"`
	// Unrendered counts requests that were left out because their bodies cannot be rendered exactly.
	Unrendered int `json:"unrendered,omitempty"`
}

// Prediction is one request's answer beside the engine's number, in tokens.
type Prediction struct {
	// Index counts the requests of the file from 0; Source ran it.
	Index  int
	Source string
	// Predicted and Reported are tokens taken from the device; the Host pair what host memory adds, when reported.
	Predicted, Reported         int
	HostPredicted, HostReported int
	HasHost                     bool
	Bound                       indexer.Bound
	Wrong                       bool
	// Differs: the tokens rendered are not those that the engine ran.
	Differs bool
}

// Options of a verification. The zero value works.
type Options struct {
	Index indexer.Options
	// Render, when set, makes the prompt of each recorded body, and the recorded tokens are only compared with it. A
	// request without a body keeps its tokens. ErrUnrendered leaves the request out, other errors end the verification.
	Render func(ctx context.Context, path string, body []byte) ([]uint32, []indexer.Feature, error)
	// Observe, when set, sees every prediction.
	Observe func(Prediction)
	// Progress, when set, is told how much of the file was read, in bytes.
	Progress func(done, size int64)
}

// File verifies the recording at path. A torn end and bad records are reported, not errors; a file that holds no request
// is an error, since it proves nothing.
func File(ctx context.Context, path string, opts Options) (Report, error) {
	start := time.Now()
	complete, err := histories(path)
	if err != nil {
		return Report{}, err
	}
	r, err := recording.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer r.Close()
	p := newPlayer(opts, complete)
	p.report.File = path
	for ctx.Err() == nil {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		switch {
		case errors.Is(err, recording.ErrTorn):
			p.report.Torn = true
			continue
		case errors.Is(err, recording.ErrRecord):
			p.report.Bad++
			continue
		case err != nil:
			return Report{}, fmt.Errorf("%s: %w", path, err)
		}
		if err := p.play(ctx, rec); err != nil {
			return Report{}, fmt.Errorf("%s: %w", path, err)
		}
		if opts.Progress != nil {
			opts.Progress(r.Offset(), r.Size())
		}
	}
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	if p.report.Requests == 0 {
		return Report{}, fmt.Errorf("%s: no requests to verify (%d damaged records, %d bodies not rendered)", path, p.report.Bad, p.report.Unrendered)
	}
	p.report.Seconds = time.Since(start).Seconds()
	return p.report, nil
}

// histories finds the sources whose recording begins with the first batch that the engine published. Until that batch
// arrives such a source is known to be empty, not unknown: the recording as a whole is the witness.
func histories(path string) (map[string]bool, error) {
	r, err := recording.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	seen := make(map[string]bool)
	for {
		rec, err := r.Next()
		switch {
		case err == io.EOF:
			return seen, nil
		case errors.Is(err, recording.ErrTorn), errors.Is(err, recording.ErrRecord):
			continue // told when the file is played
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if _, ok := seen[rec.Source]; ok || rec.Kind != recording.KindMessage {
			continue
		}
		if m, err := events.ParseFrames(rec.Frames); err == nil {
			seen[rec.Source] = m.Seq == 0
		}
	}
}
