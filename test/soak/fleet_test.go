package soak

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

const (
	sources    = 16
	topics     = 240 // that conversations are about at any time
	systems    = 12  // system prompts
	namespaces = 10
)

// How long things last, about.
const (
	topicLife     = 3 * time.Hour // each topic's
	systemLife    = 6 * time.Hour
	namespaceLife = 2 * time.Hour
	sourceLife    = 8 * time.Hour
	cacheLife     = 6 * time.Hour // until a source loses all it has
)

// fleet is all sources and what they are asked.
type fleet struct {
	t       *testing.T
	x       *indexer.Index
	rng     *rand.Rand
	list    []*source
	topics  []*topic
	systems []uint32
	spaces  []indexer.Namespace
	made    uint32 // names so far
	asks    chan indexer.Query
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, x: indexer.New(indexer.Options{}), rng: rand.New(rand.NewPCG(seed, 1)), asks: make(chan indexer.Query, 16)}
	for range systems {
		f.systems = append(f.systems, f.name())
	}
	for i := range namespaces {
		f.spaces = append(f.spaces, f.space(i))
	}
	for range topics {
		f.topics = append(f.topics, f.topic())
	}
	for i := range sources {
		f.list = append(f.list, f.source(i))
	}
	return f
}

// name is a number that was not used before.
func (f *fleet) name() uint32 { f.made++; return f.made }

// space is a new salt, a new adapter, both, or neither, whichever is at place i.
func (f *fleet) space(i int) (n indexer.Namespace) {
	kind := i % 4
	if kind&1 != 0 {
		n.Salt = fmt.Sprintf("salt-%d", f.name())
	}
	if kind&2 != 0 {
		n.Adapter = fmt.Sprintf("adapter-%d", f.name())
	}
	return n
}

func (f *fleet) topic() *topic {
	t := &topic{id: f.name(), system: f.systems[f.rng.IntN(systems)], blocks: systemBlocks + 1 + f.rng.IntN(20)}
	if f.rng.IntN(3) == 0 {
		t.Namespace = f.spaces[f.rng.IntN(namespaces)]
	}
	return t
}

// source opens a source that was not there before. What it is like depends on its place i, so that the mix stays.
func (f *fleet) source(i int) *source {
	name := f.name()
	s := &source{
		conf:    events.Source{Worker: fmt.Sprintf("worker-%d", name), Engine: events.EngineVLLM, Model: "m"},
		rng:     rand.New(rand.NewPCG(uint64(name), 2)),
		hashing: hashing(i % int(hashings)),
		secret:  f.rng.Uint64(),
		size:    4,
	}
	if i%8 == 7 {
		s.size = 8
	}
	if i%5 == 4 {
		s.conf.Engine = events.EngineSGLang
	}
	var err error
	if s.ledger, err = f.x.Open(s.conf); err != nil {
		f.t.Fatal(err)
	}
	s.ledger.Joined(true)
	return s
}

// due says whether one of n things that last so long ends in a time of step.
func (f *fleet) due(step, life time.Duration, n int) bool {
	return f.rng.Float64() < float64(step)*float64(n)/float64(life)
}

// pass lets time pass: a request, and whatever else is due.
func (f *fleet) pass(step time.Duration) {
	if f.due(step, systemLife, systems) {
		f.systems[f.rng.IntN(systems)] = f.name()
	}
	if f.due(step, namespaceLife, namespaces) {
		i := f.rng.IntN(namespaces)
		f.spaces[i] = f.space(i)
	}
	if f.due(step, topicLife, topics) {
		f.topics[f.rng.IntN(topics)] = f.topic()
	}
	if f.due(step, cacheLife, sources) {
		f.list[f.rng.IntN(sources)].lose()
	}
	if f.due(step, sourceLife, sources) {
		i := f.rng.IntN(sources)
		f.list[i].ledger.Close()
		f.list[i] = f.source(i)
	}
	t := f.topics[f.rng.IntN(topics)]
	if t.blocks < longest && f.rng.IntN(4) == 0 {
		t.blocks += 1 + f.rng.IntN(min(8, longest-t.blocks))
	}
	f.list[f.rng.IntN(sources)].serve(t)
	select {
	case f.asks <- indexer.Query{Model: "m", Namespace: t.Namespace, Tokens: t.tokens(4, 0, t.blocks)}:
	default: // the reader is busy
	}
}

// answer asks until there are no more questions, and says how many times somebody held something.
func (f *fleet) answer() (found int) {
	r := f.x.NewReader()
	for q := range f.asks {
		list, err := r.Lookup(f.t.Context(), &q)
		if err != nil {
			f.t.Error(err)
		}
		for _, m := range list {
			if m.Held > len(q.Tokens) || m.Reusable > m.Held {
				f.t.Errorf("held %d, reusable %d of %d", m.Held, m.Reusable, len(q.Tokens))
			}
			if m.Held > 0 {
				found++
			}
		}
		holders, err := r.Holders(f.t.Context(), &q)
		if err != nil || len(holders) > 3*sources {
			f.t.Errorf("%d holders, %v", len(holders), err)
		}
	}
	return found
}

// counts checks every source's books.
func (f *fleet) counts() {
	for _, s := range f.list {
		st := s.ledger.Stats()
		if want := s.resident(); st.Resident != want {
			f.t.Errorf("%s holds %v blocks, want %v", s.conf.ID(), st.Resident, want)
		}
		if st.OrphanBlocks != 0 || st.Rejected != [events.ReasonCount]uint64{} {
			f.t.Errorf("%s: %d blocks wait, rejected %v", s.conf.ID(), st.OrphanBlocks, st.Rejected)
		}
	}
}
