package accuracy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

var upper = indexer.Bound{Kind: indexer.Upper, Doubt: indexer.DoubtNamespace}

func exact(predicted, actual int) Outcome {
	return Outcome{Predicted: predicted, Actual: actual, PredictedPrompt: 200, Prompt: 200, BlockSize: 16}
}

func TestTally_Counts(t *testing.T) {
	var tally Tally
	if got := tally.Report(); got != (Report{}) {
		t.Errorf("without outcomes: %+v", got)
	}
	over := exact(64, 16)
	over.Bound = upper
	under := exact(0, 32)
	under.Bound = indexer.Bound{Kind: indexer.Lower, Doubt: indexer.DoubtHistory}
	for _, o := range []Outcome{exact(48, 48), exact(48, 32), exact(0, 48), over, under} {
		tally.Add(o)
	}
	want := Report{
		Outcomes: 5, Equal: 1, Over: 2, Under: 2, OverTokens: 16 + 48, UnderTokens: 48 + 32, Wrong: 2,
		Recent: 0.25, HasRecent: true, // of four: the upper bound held
	}
	if diff := cmp.Diff(want, tally.Report()); diff != "" {
		t.Error(diff)
	}
}

func TestTally_Flags(t *testing.T) {
	var tally Tally
	for range MinRecent - 1 {
		tally.Add(exact(48, 0))
	}
	if tally.Report().Flagged {
		t.Error("flagged after too few outcomes")
	}
	tally.Add(exact(48, 0))
	if got := tally.Report(); !got.Flagged || got.Cause != CauseHiddenNamespace {
		t.Errorf("all over: %+v", got)
	}
	for range MinRecent {
		tally.Add(exact(48, 48))
	}
	if got := tally.Report(); got.Flagged || got.Cause != CauseNone || got.Recent != 0.5 {
		t.Errorf("half of them equal: %+v", got)
	}
	for range Window {
		tally.Add(exact(48, 48))
	}
	if got := tally.Report(); got.Recent != 1 || got.Over != MinRecent {
		t.Errorf("old misses are still recent: %+v", got)
	}
	for range Window {
		o := exact(48, 0)
		o.Bound = upper
		tally.Add(o)
	}
	if got := tally.Report(); got.Flagged || got.Recent != 1 {
		t.Errorf("upper bounds that held: %+v", got)
	}
}

func TestTally_Causes(t *testing.T) {
	tests := []struct {
		name string
		want Cause
		make func(i int) Outcome
	}{
		{"other lengths", CauseTokenizer, func(int) Outcome { o := exact(0, 48); o.Prompt = 190; return o }},
		{"lengths before sizes", CauseTokenizer, func(int) Outcome { o := exact(0, 40); o.Prompt = 190; return o }},
		{"smaller blocks", CauseBlockSize, func(i int) Outcome { return exact(16*(i%3), 16*(i%3)+8) }},
		{"larger blocks", CauseBlockSize, func(i int) Outcome { return exact(64*(1+i%3)+16, 64*(1+i%3)) }},
		{"stores of another size", CauseBlockSize, func(int) Outcome { o := exact(0, 64); o.Refused = true; return o }},
		{"held elsewhere", CauseNamespace, func(int) Outcome { o := exact(0, 64); o.Elsewhere = true; return o }},
		{"over", CauseHiddenNamespace, func(i int) Outcome { return exact(64+16*(i%5), 0) }},
		{"joined late", CauseHistory, func(i int) Outcome {
			o := exact(0, 16*(1+i%5))
			o.Bound = indexer.Bound{Kind: indexer.Lower, Doubt: indexer.DoubtHistory}
			return o
		}},
		{"never announced", CauseTokenizer, func(i int) Outcome { return exact(0, 16*(1+i%5)) }},
		{"estimates", CauseUnknown, func(i int) Outcome {
			o := exact(0, 16*(1+i%5))
			o.Bound = indexer.Bound{Kind: indexer.Estimate, Doubt: indexer.DoubtMedia}
			return o
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var tally Tally
			for i := range MinRecent {
				tally.Add(tt.make(i))
			}
			if got := tally.Report(); got.Cause != tt.want || !got.Flagged {
				t.Errorf("cause %v of %+v, want %v", got.Cause, got, tt.want)
			}
		})
	}
}

// Invariant 5: a source that leaves takes its outcomes with it.
func TestBook_FollowsTheSources(t *testing.T) {
	x, b := indexer.New(indexer.Options{}), NewBook()
	src := events.Source{Worker: "w", Rank: 1, Engine: events.EngineVLLM, Model: "m"}
	l, err := x.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Report("w", 1); ok {
		t.Error("a report without an outcome")
	}
	b.Add(l, exact(48, 48))
	if r := b.Add(l, exact(48, 0)); r.Outcomes != 2 {
		t.Errorf("after two outcomes: %+v", r)
	}
	if r, ok := b.Report("w", 1); !ok || r.Equal != 1 || r.Over != 1 {
		t.Errorf("report %+v, %v", r, ok)
	}
	if _, ok := b.Report("w", 0); ok {
		t.Error("another rank has a report")
	}
	l.Close()
	if _, ok := b.Report("w", 1); ok {
		t.Error("a closed source has a report")
	}
	again, err := x.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	if r := b.Add(again, exact(48, 48)); r.Outcomes != 1 {
		t.Errorf("after it came again: %+v", r)
	}
}

func TestBook_AnyFlagged(t *testing.T) {
	x, b := indexer.New(indexer.Options{}), NewBook()
	src := events.Source{Worker: "w", Engine: events.EngineVLLM, Model: "m"}
	l, err := x.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * MinRecent {
		if want := i >= MinRecent; b.AnyFlagged() != want {
			t.Fatalf("after %d outcomes: %v", i, !want)
		}
		b.Add(l, exact(48, 0))
	}
	for range Window {
		b.Add(l, exact(48, 48))
	}
	if b.AnyFlagged() {
		t.Error("flagged though it is well again")
	}
	for range Window {
		b.Add(l, exact(48, 0))
	}
	l.Close()
	if l, err = x.Open(src); err != nil {
		t.Fatal(err)
	}
	if b.Add(l, exact(48, 48)); b.AnyFlagged() {
		t.Error("a source that left is flagged")
	}
}
