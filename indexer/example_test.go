package indexer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// tokens are the ids from first to last.
func tokens(first, last uint32) (out []uint32) {
	for id := first; id <= last; id++ {
		out = append(out, id)
	}
	return out
}

// An index without the server: open a source, apply what it announces, look up who holds a prompt.
func Example() {
	index := indexer.New(indexer.Options{})
	ledger, err := index.Open(events.Source{Worker: "10.0.0.5:8000", Engine: events.EngineVLLM, Model: "m", BlockSize: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()
	ledger.Joined(true) // what follows is all that the engine ever stored

	ledger.Apply(&events.Batch{Events: []events.Event{{
		Kind: events.Stored, Hashes: []events.Hash{events.HashInt(101), events.HashInt(102), events.HashInt(103)},
		Tokens: tokens(1, 12), BlockSize: 4,
	}}})
	look := func() {
		matches, err := index.Lookup(context.Background(), indexer.Query{Model: "m", Tokens: tokens(1, 15)})
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range matches {
			fmt.Printf("%s holds %d and reuses %d of 15 tokens, %s\n", m.Source.Worker, m.Held, m.Reusable, m.Bound.Kind)
		}
	}
	look()
	ledger.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: []events.Hash{events.HashInt(102)}}}})
	look() // block 103 lies behind a hole now

	// Output:
	// 10.0.0.5:8000 holds 12 and reuses 12 of 15 tokens, exact
	// 10.0.0.5:8000 holds 4 and reuses 4 of 15 tokens, exact
}
