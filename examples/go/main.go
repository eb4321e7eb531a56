// Command go asks a running kvscout which workers hold a prompt.
//
//	go run ./examples/go -server http://127.0.0.1:9470 -model tiny-qwen3 1 2 3 4
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strconv"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

func main() {
	log.SetFlags(0)
	servers := flag.String("server", "http://127.0.0.1:9470", "addresses of kvscout and its replicas, by comma")
	model := flag.String("model", "", "served model; empty if there is only one")
	token := flag.String("token-file", "", "file with the bearer token; empty sends none")
	flag.Parse()

	var tokens []int32
	for _, arg := range flag.Args() {
		id, err := strconv.ParseInt(arg, 10, 32)
		if err != nil {
			log.Fatalf("token %q: %v", arg, err)
		}
		tokens = append(tokens, int32(id))
	}
	var opts client.Options
	if *token != "" {
		opts.Token = client.TokenFile(*token)
	}
	scout, err := client.New(strings.Split(*servers, ","), opts)
	if err != nil {
		log.Fatal(err)
	}
	defer scout.Close()
	res, err := scout.Score(context.Background(), &kvscoutv1.ScoreRequest{Model: *model, Tokens: client.Tokens(tokens)})
	if err != nil {
		// A typed error with a reason, never a zero score in disguise.
		log.Fatalf("%v (reason %q)", err, client.Reason(err))
	}
	for _, w := range res.GetWorkers() {
		fmt.Printf("%s/%d score %.3f, %d of %d tokens reusable, %v\n", w.GetWorkerId(), w.GetRank(), w.GetScore(),
			w.GetReusableTokens(), res.GetPromptTokens(), w.GetBound().GetKind())
	}
}
