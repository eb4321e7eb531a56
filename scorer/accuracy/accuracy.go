package accuracy

import (
	"github.com/kvscout/kvscout/indexer"
)

const (
	// Window is how many outcomes are recent.
	Window = 64
	// MinRecent is how many recent outcomes a flag needs.
	MinRecent = 16
	// flagBelow is the share of equal ones under which a source is flagged.
	flagBelow = 0.5
)

// Cause is why predictions are likely to miss.
type Cause uint8

const (
	// CauseNone: the source is not flagged.
	CauseNone Cause = iota
	// CauseUnknown: nothing points to a cause.
	CauseUnknown
	// CauseBlockSize: the engine reuses blocks of another size than its events tell or than was configured.
	CauseBlockSize
	// CauseNamespace: the source holds the prompts under another salt or adapter than the requests name.
	CauseNamespace
	// CauseTokenizer: the engine counts other prompt lengths, or reuses what was never announced as these tokens.
	CauseTokenizer
	// CauseHiddenNamespace: the engine reuses less than is held, so it keeps apart what looks alike in its events.
	CauseHiddenNamespace
	// CauseHistory: history is missing, so the engine reuses what was announced before or lost.
	CauseHistory
)

var causeNames = [...]string{"", "unknown", "block_size", "namespace", "tokenizer", "hidden_namespace", "history"}

func (c Cause) String() string { return causeNames[c] }

// Outcome is one prediction beside the engine's word. Counts are tokens.
type Outcome struct {
	// Predicted is what was said to be reusable, Actual what the engine took from its cache.
	Predicted, Actual int
	// PredictedPrompt and Prompt are the prompt's length as predicted and as the engine counted it.
	PredictedPrompt, Prompt int
	// Bound of the prediction.
	Bound indexer.Bound
	// BlockSize of the source; 0 while it has none.
	BlockSize int
	// Elsewhere: the source holds what the engine took in another namespace.
	Elsewhere bool
	// Refused: stores of the source were refused because of their block size.
	Refused bool
}

// excused says whether the outcome is an upper bound that held.
func (o *Outcome) excused() bool { return o.Bound.Kind == indexer.Upper && o.Predicted > o.Actual }

// wrong says whether an exact answer differs, or a bound did not hold.
func (o *Outcome) wrong() bool {
	switch o.Bound.Kind {
	case indexer.Exact:
		return o.Predicted != o.Actual
	case indexer.Upper:
		return o.Predicted < o.Actual
	case indexer.Lower:
		return o.Predicted > o.Actual
	default:
		return false
	}
}

// Report is what outcomes show of one source.
type Report struct {
	// Outcomes are Equal, Over (more predicted than taken) and Under together. Wrong are exact answers that differ and
	// bounds that did not hold.
	Outcomes, Equal, Over, Under, Wrong uint64
	// OverTokens were predicted and not taken, UnderTokens taken and not predicted.
	OverTokens, UnderTokens uint64
	// Recent is the share of equal ones among the recent outcomes, upper bounds that held left out; of none without
	// HasRecent.
	Recent    float64
	HasRecent bool
	// Flagged says that Recent is too low, Cause why.
	Flagged bool
	Cause   Cause
}

// Tally counts the outcomes of one source. The zero value has none.
type Tally struct {
	counts Report
	recent [Window]Outcome // a ring: number n is at n % Window
	n      uint64
}

// Add takes an outcome in.
func (t *Tally) Add(o Outcome) {
	c := &t.counts
	c.Outcomes++
	switch d := o.Predicted - o.Actual; {
	case d > 0:
		c.Over++
		c.OverTokens += uint64(d)
	case d < 0:
		c.Under++
		c.UnderTokens += uint64(-d)
	default:
		c.Equal++
	}
	if o.wrong() {
		c.Wrong++
	}
	if !o.excused() {
		t.recent[t.n%Window] = o
		t.n++
	}
}

// Report is what was counted so far.
func (t *Tally) Report() Report {
	r := t.counts
	recent := t.recent[:min(t.n, Window)]
	if len(recent) == 0 {
		return r
	}
	var misses []Outcome
	for _, o := range recent {
		if o.Predicted != o.Actual {
			misses = append(misses, o)
		}
	}
	r.Recent, r.HasRecent = 1-float64(len(misses))/float64(len(recent)), true
	if len(recent) >= MinRecent && r.Recent < flagBelow {
		r.Flagged, r.Cause = true, causeOf(recent, misses)
	}
	return r
}
