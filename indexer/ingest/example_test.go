package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// A fleet without the server. Its worker is pushed what a real vLLM published; with an endpoint in its source it would be
// listened to over ZMQ. Each recorded request is looked up at its time and compared with what the engine said.
func Example() {
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	defer fleet.Close()
	r, err := recording.Open("../../test/testdata/recordings/vllm-0.32-reuse-reports.kvrec")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	equal, requests := 0, 0
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			fmt.Printf("%d of %d equal\n", equal, requests)
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		switch rec.Kind {
		case recording.KindSource:
			source := *rec.Info
			source.Events, source.Replay = "", "" // pushed, not listened to
			if _, err := fleet.Register(ingest.Worker{ID: source.Worker, Model: "m", Sources: []events.Source{source}}); err != nil {
				log.Fatal(err)
			}
		case recording.KindMessage:
			message, err := events.ParseFrames(rec.Frames)
			if err != nil {
				log.Fatal(err)
			}
			worker, rank, err := events.ParseID(rec.Source)
			if err != nil {
				log.Fatal(err)
			}
			if _, err := fleet.Publish(worker, rank, []events.Message{message}); err != nil {
				log.Fatal(err)
			}
		case recording.KindRequest:
			matches, err := index.Lookup(context.Background(), indexer.Query{Model: "m", Tokens: rec.Request.Tokens})
			if err != nil {
				log.Fatal(err)
			}
			requests++
			if len(matches) == 1 && matches[0].Reusable == int(rec.Request.CachedTokens) {
				equal++
			}
		}
	}

	// Output: 100 of 100 equal
}
