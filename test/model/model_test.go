package model

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("model.seed", 0, "seed of the model tests; 0 draws one after the other")
	minutesFlag = flag.Float64("model.minutes", 0, "minutes of new seeds for each model test; 0 is some seconds")
	replayFlag  = flag.String("model.replay", "", "file of a script to play instead of the stored ones")
	outFlag     = flag.String("model.out", os.TempDir(), "folder for scripts that failed")
)

// shrinking takes at most so long.
const shrinking = time.Minute

// kinds is the number of shapes.
var kinds = uint64(len(shapes))

// seeds plays the script of one seed after the other: the given one, or new ones for about the time given. What fails is
// made smaller and written to a file.
func seeds(t *testing.T, long time.Duration, draw func(seed uint64) *script) {
	t.Helper()
	if testing.Short() {
		long /= 5
	}
	if *minutesFlag > 0 {
		long = time.Duration(*minutesFlag * float64(time.Minute))
	}
	played, credited := 0, 0
	for start := time.Now(); played == 0 || *seedFlag == 0 && time.Since(start) < long; played++ {
		seed := *seedFlag
		if seed == 0 {
			// The script's size follows from the remainder, so that each has its turn.
			seed = rand.Uint64()/kinds*kinds + uint64(played)%kinds
		}
		s := draw(seed)
		out := play(s)
		if out.failed() {
			report(t, seed, s, out)
			return
		}
		credited += out.credited
		if *minutesFlag > 0 && played%100 == 0 {
			t.Logf("%v: seed %d agrees, number %d", time.Since(start).Round(time.Second), seed, played+1)
		}
	}
	t.Logf("%d scripts", played)
	if credited == 0 {
		t.Error("no source was ever credited with a token: the test proves nothing")
	}
}

// report says how a script failed and leaves the smallest part of it that still does.
func report(t *testing.T, seed uint64, s *script, out outcome) {
	t.Helper()
	t.Errorf("seed %d, %v\nrepeat with -run='^%s$' -model.seed=%d", seed, out, t.Name(), seed)
	tries := 1
	if s.Beside {
		tries = 20 // it depends on who comes first
	} else {
		s.Ops = s.Ops[:min(len(s.Ops), out.at+1)]
	}
	least := shrink(*s, func(s *script) bool {
		for range tries {
			if play(s).failed() {
				return true
			}
		}
		return false
	}, shrinking)
	path, err := least.write(*outFlag)
	if err != nil {
		t.Errorf("the script was not written: %v", err)
	}
	t.Errorf("%d operations of %d are enough; repeat with -run='^TestReplay$' -model.replay=%s", len(least.Ops), len(s.Ops), path)
	if len(least.Ops) <= 40 {
		t.Logf("they are\n%v%v", least.String(), play(&least).faults)
	}
}

// TestModel_Rules1To11 lets random events happen to sources of every kind and compares the index with the model after
// each (rules 1 to 9, 11, 17).
func TestModel_Rules1To11(t *testing.T) {
	seeds(t, 6*time.Second, func(seed uint64) *script { return kindsScript(seed, 1000, 400) })
}

// TestModel_ManyHolders does so to sources of one kind, up to hundreds on one prompt, on prompts up to thousands of
// blocks, that name their blocks alike, differently, or by small numbers.
func TestModel_ManyHolders(t *testing.T) {
	seeds(t, 6*time.Second, func(seed uint64) *script { return wideScript(seed, shapes[seed%kinds], 60) })
}

// TestModel_LongChain is one prompt of more blocks than 16 bits count, held to its end by one source.
func TestModel_LongChain(t *testing.T) {
	long := shape{sources: 2, prompts: 1, blocks: 70_500, batch: 9000, steps: 12, whole: true}
	if testing.Short() { // the race detector has nothing to see here, and takes its time
		long.blocks, long.batch = 7_000, 900
	}
	seeds(t, 0, func(seed uint64) *script {
		return wideScript(seed, long, 0)
	})
}

// TestModel_Rule16_ReadersBesideWriters writes every source from a goroutine of its own beside readers. No reader may
// see a source hold what it never held, nor less than what it holds all the time, however they fall together, and what
// the writers leave is what the model says, in whatever order they ran (rules 1, 8 and 16).
func TestModel_Rule16_ReadersBesideWriters(t *testing.T) {
	seeds(t, 3*time.Second, func(seed uint64) *script {
		s := kindsScript(seed, 3000, 30)
		s.Beside = true
		return s
	})
}

// TestModel_Rule16_ManyHolders does so to many sources of one kind, some of which hold something all the time.
func TestModel_Rule16_ManyHolders(t *testing.T) {
	seeds(t, 4*time.Second, func(seed uint64) *script {
		s := wideScript(seed, shapes[seed%kinds], 100)
		s.Beside = true
		return s
	})
}

// TestReplay plays scripts from files: -model.replay's, or those in testdata, which are faults that were found.
func TestReplay(t *testing.T) {
	paths := []string{*replayFlag}
	if *replayFlag == "" {
		var err error
		if paths, err = filepath.Glob("testdata/*.json"); err != nil || len(paths) == 0 {
			t.Fatalf("no scripts in testdata, %v", err)
		}
	}
	for _, path := range paths {
		s, err := readScript(path)
		if err != nil {
			t.Fatal(err)
		}
		if out := play(&s); out.failed() {
			t.Errorf("%s: %v\n%v", path, out, s.String())
		}
	}
}

// kindsScript draws what happens to a source of each kind.
func kindsScript(seed uint64, steps, calm int) *script {
	rng := rand.New(rand.NewPCG(seed, 1))
	texts := prompts(rng, 12)
	out := &script{MaxOrphans: []int{16, 1000}[rng.IntN(2)]}
	var list []*generator
	for i, p := range profiles() {
		list = append(list, &generator{profile: p, rng: rand.New(rand.NewPCG(seed, uint64(2+i))), texts: texts, calm: calm})
		out.Sources = append(out.Sources, p.conf)
	}
	for range steps {
		i := rng.IntN(len(list))
		o := op{Source: i, step: list[i].step()}
		for range 2 {
			a := ask{Query: query(rng, texts)}
			if len(a.Tokens) > 0 && rng.IntN(8) == 0 { // by keys instead of tokens
				a.KeySize = 4 << rng.IntN(2)
			}
			o.Asks = append(o.Asks, a)
		}
		out.Ops = append(out.Ops, o)
	}
	return out
}
