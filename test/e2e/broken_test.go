package e2e

import (
	"flag"
	"math/rand/v2"
	"testing"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

var seed = flag.Uint64("seed", 20260929, "seed of the broken messages")

// peakLimit is the most memory that the server may ever have resident under attack. Idle it has about 25 MB; the worst
// payload that its limits allow costs a decoder near 150 MB.
const peakLimit = memoryFactor * 250 << 20

// battle is a server with a source that breaks messages and one that does not.
type battle struct {
	t         *testing.T
	s         *server
	bad, well *engine
	traffic   *rand.Rand
	chain     uint32 // blocks stored by good batches of bad
	last      uint64 // number of its last batch
	want      map[string]uint64
}

func newBattle(t *testing.T, dial bool) *battle {
	t.Helper()
	b := &battle{t: t, traffic: rand.New(rand.NewPCG(*seed, 1)), want: make(map[string]uint64)}
	b.bad = startEngine(t, engineConfig{id: "bad", dial: dial})
	b.well = startEngine(t, engineConfig{id: "well", dial: dial, blocks: 64})
	b.s = serveFleet(t, []*engine{b.bad, b.well})
	b.bad.hello(b.s)
	b.well.hello(b.s)
	return b
}

const firstToken = 5_000_000

// good publishes the next block of the broken source's one chain.
func (b *battle) good() obj {
	parent := any(nil)
	if b.chain > 0 {
		parent = 1_000_000 + b.chain - 1
	}
	at := uint32(firstToken + blockSize*b.chain)
	b.chain++
	return publish(stored(uint64(1_000_000+b.chain-1), parent, span(at, at+blockSize-1)))
}

// fight sends kinds, a good batch after every tenth, and has the healthy source work in between.
func (b *battle) fight(kinds []kind) {
	b.t.Helper()
	const round = 40
	for i := 0; i < len(kinds); i += round {
		var ops []obj
		for j, k := range kinds[i:min(i+round, len(kinds))] {
			ops = append(ops, k.op)
			if k.reason != "" {
				b.want[k.reason]++
			}
			if j%10 == 9 {
				ops = append(ops, b.good())
			}
		}
		results := b.bad.all(append(ops, b.good()))
		b.last = results[len(results)-1].Seq
		b.neighbour()
	}
}

// neighbour has the healthy source serve a request and compares.
func (b *battle) neighbour() {
	b.t.Helper()
	tokens := prompt(b.traffic)
	w := b.s.score(b.t, "well", tokens)
	r := b.well.serve(tokens)
	if w.ReusableTokens != uint32(r.Cached) || w.Bound.Kind != exact && w.Freshness.LastSequence != nil {
		b.t.Errorf("healthy source: predicted %d, %v; the engine took %d", w.ReusableTokens, w.Bound, r.Cached)
	}
	if !r.Silent {
		b.s.reached(b.t, "well", 0, r.Seq)
	}
}

func (b *battle) reached() *kvscoutv1.SourceStats {
	b.t.Helper()
	return b.s.await(b.t, "last batch", "bad", 0, lastIs(b.last))
}

// TestBroken_ThousandKinds: a thousand kinds of broken message between good ones. The server lives and stays small, the
// neighbour's answers stay exact, good batches of the same source apply (rule 10, cases 21, 46, 88, 120), and the stats
// say what was sent.
func TestBroken_ThousandKinds(t *testing.T) {
	for _, dial := range []bool{false, true} {
		t.Run(map[bool]string{false: "kvscout dials", true: "engine dials"}[dial], func(t *testing.T) {
			b := newBattle(t, dial)
			r := rand.New(rand.NewPCG(*seed, 2))
			t.Logf("seed %d", *seed)
			counted := countedKinds(t, r)
			total := 1000
			if testing.Short() {
				r.Shuffle(len(counted), func(i, j int) { counted[i], counted[j] = counted[j], counted[i] })
				counted, total = counted[:150], 200
			}
			wild := wildKinds(t, r, max(total-len(counted), 50))
			b.counted(counted)
			b.wild(wild)
			b.numbers()
			b.tooLarge()
			if peak := b.s.peakRSS(t); peak > peakLimit {
				t.Errorf("peak of %d MB resident, limit %d", peak>>20, peakLimit>>20)
			} else {
				t.Logf("%d kinds, peak of %d MB resident", len(counted)+len(wild), peak>>20)
			}
			if !b.s.alive() {
				t.Error("the server did not live through it")
			}
		})
	}
}

// counted sends what the stats must tell one by one.
func (b *battle) counted(kinds []kind) {
	t := b.t
	t.Helper()
	b.last = b.bad.do(b.good()).Seq
	before := b.reached()
	b.fight(kinds)
	after := b.reached()
	for reason, n := range after.Rejected {
		if got := n - before.Rejected[reason]; got != b.want[reason] {
			t.Errorf("%d rejected as %s, %d were sent", got, reason, b.want[reason])
		}
	}
	for reason, n := range b.want {
		if after.Rejected[reason] == 0 {
			t.Errorf("none rejected as %s, %d were sent", reason, n)
		}
	}
	if after.Gaps != 0 || after.Resets != 0 || after.Connections != before.Connections {
		t.Errorf("one connection without gap and reset wanted: %v", after)
	}
	held := blockSize * b.chain
	tokens := span(firstToken, firstToken+held)
	w := b.s.score(t, "bad", tokens)
	if w.HeldTokens != held || w.Bound.Kind != estimate {
		t.Errorf("broken source: %d tokens held of %d stored, bound %v", w.HeldTokens, held, w.Bound)
	}
	b.last = b.bad.do(obj{"op": "clear"}).Seq
	b.reached()
	same(t, "cleared, so known again", b.s.score(t, "bad", tokens), answer{0, 0, exact, ""})
	b.chain = 0
}

// wild sends what may do anything to its own source, and to nothing else.
func (b *battle) wild(kinds []kind) {
	b.t.Helper()
	b.fight(kinds)
	b.reached()
}

// numbers sends a batch with an absurd number: a hole, and then a number that falls back.
func (b *battle) numbers() {
	t := b.t
	t.Helper()
	before := b.reached()
	b.bad.do(sent(nil, []byte{0x80, 0, 0, 0, 0, 0, 0, 0}, []byte{0x92, 1, 0x90}))
	b.s.await(t, "absurd number", "bad", 0, lastIs(1<<63))
	b.chain = 0
	b.bad.do(obj{"op": "clear"})
	b.last = b.bad.do(b.good()).Seq
	after := b.reached()
	if after.Gaps != before.Gaps+1 || after.Resets != before.Resets+1 {
		t.Errorf("one gap and one reset more wanted: %v, before %v", after, before)
	}
	same(t, "after the reset and a clear", b.s.score(t, "bad", span(firstToken, firstToken+4)), answer{4, 4, exact, ""})
}

// tooLarge sends frames and messages over the limits: each costs the connection, which is made again.
func (b *battle) tooLarge() {
	t := b.t
	t.Helper()
	for _, op := range []obj{
		{"op": "huge", "bytes": 16<<20 + 1}, {"op": "huge", "bytes": 40 << 20}, sent(make([][]byte, 40)...),
	} {
		before := b.s.stats(t, "bad", 0)
		b.bad.do(op)
		b.s.await(t, "too large", "bad", 0, func(st *kvscoutv1.SourceStats) bool {
			return st.Rejected["too_large"] == before.Rejected["too_large"]+1
		})
		b.neighbour()
		b.bad.hello(b.s)
		b.last = b.bad.do(b.good()).Seq
		// The counters are read one after the other: the batch may be seen before the connection that brought it.
		after := b.s.await(t, "one more connection", "bad", 0, func(st *kvscoutv1.SourceStats) bool {
			return lastIs(b.last)(st) && st.Connections == before.Connections+1
		})
		if after.Gaps != before.Gaps {
			t.Errorf("no gap wanted: %v, before %v", after, before)
		}
	}
	// What was in there is unknown, until the engine clears its cache.
	held := blockSize * b.chain
	tokens := span(firstToken, firstToken+held)
	same(t, "after reconnecting", b.s.score(t, "bad", tokens), answer{held, held, estimate, "EVENTS_UNREAD"})
	b.last = b.bad.do(obj{"op": "clear"}).Seq
	b.reached()
	same(t, "cleared", b.s.score(t, "bad", tokens), answer{0, 0, exact, ""})
}
