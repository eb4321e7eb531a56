package scorerpc

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer"
	"github.com/kvscout/kvscout/scorer/routed"
)

const (
	// memoryTime is how long an answer can be reported on.
	memoryTime = 10 * time.Minute
	// maxKept and maxKeptTokens bound the answers kept, and the tokens of their prompts together; the oldest go first.
	maxKept       = 64 << 10
	maxKeptTokens = 16 << 20
)

// memory keeps answers for reports. It is safe for concurrent use.
type memory struct {
	maxKept, maxTokens int

	mu sync.Mutex // guards what follows
	// kept by score id; order has them from the oldest on.
	kept   map[string]*kept
	order  []*kept
	tokens int // of kept
}

// kept is one answer.
type kept struct {
	id    string
	at    time.Time
	query indexer.Query // without what belongs to its request
	// tokens in the prompt.
	tokens int
	judged []judged

	mu sync.Mutex // guards reported
	// reported sources have had their outcome.
	reported map[routed.Key]bool
}

// judged is what was said of one source.
type judged struct {
	source    routed.Key
	reusable  int
	blockSize int
	bound     indexer.Bound
}

func newMemory(maxKept, maxTokens int) *memory {
	return &memory{maxKept: maxKept, maxTokens: maxTokens, kept: make(map[string]*kept)}
}

// weight of an answer in tokens: hashes count as what they take.
func (k *kept) weight() int { return len(k.query.Tokens) + 2*len(k.query.Keys) }

// keep keeps an answer and returns its id.
func (m *memory) keep(q *indexer.Query, tokens int, list []judged) string {
	k := &kept{id: rand.Text(), at: time.Now(), query: *q, tokens: tokens, judged: list}
	k.query.Tokens, k.query.Keys, k.query.Features = slices.Clone(q.Tokens), slices.Clone(q.Keys), slices.Clone(q.Features)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[k.id] = k
	m.order = append(m.order, k)
	m.tokens += k.weight()
	m.forgetLocked(k.at)
	return k.id
}

// forgetLocked drops the oldest that are too old or too many; the newest stays. Needs m.mu.
func (m *memory) forgetLocked(now time.Time) {
	for len(m.order) > 1 {
		k := m.order[0]
		if len(m.order) <= m.maxKept && m.tokens <= m.maxTokens && now.Sub(k.at) < memoryTime {
			return
		}
		m.order[0] = nil
		m.order = m.order[1:]
		delete(m.kept, k.id)
		m.tokens -= k.weight()
	}
}

// find is the answer with an id. It errs with an *indexrpc.Error.
func (m *memory) find(id string) (*kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[id]
	if !ok || time.Since(k.at) >= memoryTime {
		return nil, indexrpc.Failf(indexrpc.ReasonUnknownScore, "score %.40q was never given, or over %v ago, or before many others", id, memoryTime)
	}
	return k, nil
}

// size is the number of answers kept.
func (m *memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(time.Now())
	return len(m.order)
}

// claim says whether the source's outcome may be reported now: once.
func (k *kept) claim(source routed.Key) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reported[source] {
		return false
	}
	if k.reported == nil {
		k.reported = make(map[routed.Key]bool)
	}
	k.reported[source] = true
	return true
}

// judged is what the answer says of each source that the index knows, listed or not.
func (a *answer) judged(ranked []scorer.Ranked) []judged {
	out := make([]judged, 0, len(ranked))
	for i := range ranked {
		r := &ranked[i]
		if a.chosen.unknown[r.Source.Worker] {
			continue
		}
		j := judged{source: keyOf(r.Source), reusable: r.Reusable, blockSize: r.BlockSize, bound: r.Bound}
		if a.prompt.skipsCache {
			j.reusable = 0
		}
		if a.chosen.saltless[r.Source.Worker] {
			j.bound = indexer.Bound{Kind: indexer.Lower, Doubt: r.Bound.Doubt | indexer.DoubtNamespace}
		}
		out = append(out, j)
	}
	return out
}
