package indexer

import "testing"

// Case 153: keys are 64 bits and no secret, so that answers compare with other indexes. A collision within a namespace costs a
// wrong guess. Across namespaces there is none: even the very same keys, asked for elsewhere, are credited to nobody.
func TestCase153_CollidingKeysOfTwoNamespaces(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(chainOf(101, 2), atExtras, []any{[]any{"tenant-a"}, nil}))
	keys := Keys(sequence(1, 8), nil, 4, false, Namespace{Salt: "tenant-a"})
	as := func(ns Namespace) Query { return Query{Model: "m", Namespace: ns, Keys: keys, KeySize: 4} }
	r.held("w1", as(Namespace{Salt: "tenant-a"}), 8)
	for _, other := range []Namespace{{}, {Salt: "tenant-b"}, {Adapter: "tenant-a"}, {Salt: "tenant-a", Adapter: "ad"}} {
		r.held("w1", as(other), 0)
	}
}
