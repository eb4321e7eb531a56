package scorerpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kvscout/kvscout/indexer"
)

// Answers are forgotten when they are old, or too many, or their prompts too long together: the oldest first (rule 17).
func TestRule17_MemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(8, 400)
		found := func(id string) bool { _, err := m.find(id); return err == nil }
		tokens := make([]uint32, 100)
		first := m.keep(&indexer.Query{Tokens: tokens}, len(tokens), nil)
		tokens[0] = 7
		if k, err := m.find(first); err != nil || k.query.Tokens[0] != 0 {
			t.Errorf("the prompt is not a copy: %v", err)
		}
		var last string
		for range 4 {
			last = m.keep(&indexer.Query{Tokens: tokens}, len(tokens), nil)
		}
		if found(first) || !found(last) || m.size() != 4 || m.tokens != 400 {
			t.Errorf("%d answers of %d tokens are kept", m.size(), m.tokens)
		}
		for range 8 {
			last = m.keep(&indexer.Query{}, 1, nil)
		}
		if m.size() != 8 || m.tokens != 0 || len(m.kept) != 8 {
			t.Errorf("%d answers are kept, %d found", m.size(), len(m.kept))
		}
		time.Sleep(memoryTime - time.Nanosecond)
		if !found(last) {
			t.Error("forgotten too early")
		}
		time.Sleep(time.Nanosecond)
		if found(last) || m.size() != 1 {
			t.Errorf("%d answers are kept for ever", m.size())
		}
		if m.keep(&indexer.Query{}, 1, nil); m.size() != 1 {
			t.Errorf("%d answers are kept behind the old ones", m.size())
		}
	})
}
