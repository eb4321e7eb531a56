package scorer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/scorer"
)

// Two workers hold the first 8 tokens of a prompt of 16, one on its device and one in its host memory.
func Example() {
	index := indexer.New(indexer.Options{})
	for worker, tier := range map[string]events.Tier{"w0": events.TierHost, "w1": events.TierDevice} {
		ledger, err := index.Open(events.Source{Worker: worker, Engine: events.EngineVLLM, Model: "m", BlockSize: 4})
		if err != nil {
			log.Fatal(err)
		}
		defer ledger.Close()
		ledger.Joined(true)
		ledger.Apply(&events.Batch{Events: []events.Event{{
			Kind: events.Stored, Hashes: []events.Hash{events.HashInt(1), events.HashInt(2)},
			Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8}, BlockSize: 4, Tier: tier,
		}}})
	}
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	matches, err := index.Lookup(context.Background(), indexer.Query{Model: "m", Tokens: prompt})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range scorer.Rank(matches, len(prompt), scorer.DefaultWeights()) {
		fmt.Printf("%s %.3f\n", r.Source.Worker, r.Score)
	}

	// Output:
	// w1 0.500
	// w0 0.375
}
