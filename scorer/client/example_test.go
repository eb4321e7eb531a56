package client_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/client"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

// running is a server in this process; its worker 10.0.0.5:8000 holds the tokens 0 to 63 of model "m".
func running() (address string, stop func()) {
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	for _, id := range []string{"10.0.0.5:8000", "10.0.0.6:8000"} {
		if _, err := fleet.Register(ingest.Worker{ID: id, Model: "m", Sources: []events.Source{{Engine: events.EngineVLLM, BlockSize: 16}}}); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := fleet.Publish("10.0.0.5:8000", 0, []events.Message{{Payload: stored(prompt(64))}}); err != nil {
		log.Fatal(err)
	}
	service := scorerpc.New(index, fleet, scorerpc.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	hs := &http.Server{Handler: server.New(server.Options{Score: service, Index: indexrpc.New(index, fleet, indexrpc.Options{})}).Handler()}
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }() // ended by stop, which waits for it
	return "http://" + l.Addr().String(), func() { _ = hs.Close(); <-done; fleet.Close() }
}

// What an endpoint picker does for each request: ask, choose, tell the choice, and later what the engine made of it.
func Example() {
	address, stop := running()
	defer stop()

	scout, err := client.New([]string{address}, client.Options{Timeout: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer scout.Close()

	ctx := context.Background()
	answer, err := scout.Score(ctx, &kvscoutv1.ScoreRequest{
		Model:      "m",
		Tokens:     client.Tokens(prompt(80)),
		Candidates: []string{"10.0.0.5:8000", "10.0.0.6:8000"},
		Remember:   true, // keep the answer, for the two reports
	})
	if err != nil {
		log.Fatal(err) // a picker goes on without scores
	}
	for _, w := range answer.GetWorkers() {
		fmt.Printf("%s skips %d of %d tokens, score %.2f\n", w.GetWorkerId(), w.GetReusableTokens(), answer.GetPromptTokens(), w.GetScore())
	}
	best := answer.GetWorkers()[0]
	if _, err := scout.ReportRouted(ctx, &kvscoutv1.ReportRoutedRequest{WorkerId: best.GetWorkerId(), ScoreId: answer.GetScoreId()}); err != nil {
		log.Fatal(err)
	}
	outcome, err := scout.ReportOutcome(ctx, &kvscoutv1.ReportOutcomeRequest{
		WorkerId: best.GetWorkerId(), ScoreId: answer.GetScoreId(), PromptTokens: 80, CachedTokens: 64, // usage of the engine's answer
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("predicted %d, equal %d of %d\n", outcome.GetPredictedTokens(), outcome.GetAccuracy().GetEqual(), outcome.GetAccuracy().GetOutcomes())

	// Output:
	// 10.0.0.5:8000 skips 64 of 80 tokens, score 0.80
	// 10.0.0.6:8000 skips 0 of 80 tokens, score 0.00
	// predicted 64, equal 1 of 1
}

// Errors have the reason that the server gives.
func ExampleReason() {
	address, stop := running()
	defer stop()
	scout, err := client.New([]string{address}, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer scout.Close()

	_, err = scout.Score(context.Background(), &kvscoutv1.ScoreRequest{Model: "another", Tokens: client.Tokens([]int32{1, 2, 3})})
	switch client.Reason(err) {
	case "UNKNOWN_MODEL", "SALT_NOT_SUPPORTED_BY_ENGINE", "NO_RENDERER":
		fmt.Println("ask no more for such requests:", client.Reason(err))
	default:
		fmt.Println("go on without scores")
	}

	// Output: ask no more for such requests: UNKNOWN_MODEL
}
