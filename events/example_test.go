package events_test

import (
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
)

// What vLLM 0.32 sent first, from a recording of it.
func ExampleDecoder() {
	r, err := recording.Open("../test/testdata/recordings/vllm-0.32-reuse-reports.kvrec")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	decoder := events.NewDecoder(events.DefaultLimits())
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		if rec.Kind != recording.KindMessage {
			continue
		}
		message, err := events.ParseFrames(rec.Frames)
		if err != nil {
			log.Fatal(err)
		}
		var batch events.Batch
		if err := decoder.Decode(message.Payload, &batch); err != nil {
			log.Fatal(err)
		}
		fmt.Println("sequence", message.Seq)
		for _, e := range batch.Events {
			fmt.Println(e.Kind, len(e.Hashes), "blocks of", e.BlockSize, "from", len(e.Tokens), "tokens on", e.Tier)
		}
		return
	}

	// Output:
	// sequence 0
	// stored 6 blocks of 32 from 192 tokens on device
}
