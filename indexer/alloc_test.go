package indexer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// A reader that was used before allocates nothing: whoever holds the prompt, however many, on whatever tiers, whether it
// comes as tokens or as keys.
func TestReader_AllocatesNothing(t *testing.T) {
	for _, holders := range []int{1, 8, 64, 2048} {
		s := newSite(t, holders)
		for i := range s.l {
			s.apply(i, stored(1, 0, 64))
			switch i % 8 {
			case 1: // a tail of its own
				e := stored(2+i, 64, 80)
				e.Parent = name(1, 63)
				s.apply(i, e)
			case 2: // a hole
				s.apply(i, removed(1, 5, 6))
			case 3: // a second tier, that alone has the end
				e := stored(1, 0, 64)
				e.Tier = events.TierHost
				s.apply(i, e, removed(1, 32, 64))
			}
		}
		r := s.x.NewReader()
		tokens := &indexer.Query{Model: "m", Tokens: text(1, 64)}
		keys := &indexer.Query{Model: "m", KeySize: size, Keys: indexer.Keys(tokens.Tokens, nil, size, false, indexer.Namespace{})}
		miss := &indexer.Query{Model: "m", Tokens: text(9, 64)}
		for kind, q := range map[string]*indexer.Query{"tokens": tokens, "keys": keys, "miss": miss} {
			found := 0
			lookup := func() {
				list, err := r.Lookup(context.Background(), q)
				if err != nil || len(list) != holders {
					t.Fatalf("%d matches, %v", len(list), err)
				}
				found += list[0].Held
			}
			who := func() {
				list, err := r.Holders(context.Background(), q)
				if err != nil || (len(list) != holders) != (kind == "miss") {
					t.Fatalf("%d holders, %v", len(list), err)
				}
				found += len(list)
			}
			for call, f := range map[string]func(){"Lookup": lookup, "Holders": who} {
				t.Run(fmt.Sprintf("%s/%s/%d", call, kind, holders), func(t *testing.T) {
					f() // takes the memory that it needs
					if n := testing.AllocsPerRun(50, f); n != 0 {
						t.Errorf("%v allocations per call, want 0", n)
					}
				})
			}
			if (found == 0) != (kind == "miss") {
				t.Errorf("found %d", found)
			}
		}
	}
}
