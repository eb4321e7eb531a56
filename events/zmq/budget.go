package zmq

import "sync/atomic"

// DefaultBudget is the bound of a process that states none, in bytes.
const DefaultBudget = 256 << 20

// Budget bounds the bytes of large messages that are not yet whole, over all connections that share it. A connection
// that needs more than is left is closed. It may be used by several goroutines.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// processBudget is shared by all connections that state no other.
var processBudget = NewBudget(DefaultBudget)

// Used is how many bytes are taken now.
func (b *Budget) Used() int64 { return b.used.Load() }

func (b *Budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *Budget) give(n int64) {
	if n > 0 {
		b.used.Add(-n)
	}
}
