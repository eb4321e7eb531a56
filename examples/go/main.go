// Command go asks a running kvscout which workers hold a prompt.
//
//	go run ./examples/go -server http://127.0.0.1:9470 -model tiny-qwen3 1 2 3 4
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:9470", "URL of kvscout")
	model := flag.String("model", "", "served model; empty if there is only one")
	flag.Parse()

	// Token ids travel as little-endian int32, which costs the server next to nothing to read.
	var packed []byte
	for _, arg := range flag.Args() {
		id, err := strconv.ParseUint(arg, 10, 31)
		if err != nil {
			log.Fatalf("token %q: %v", arg, err)
		}
		packed = binary.LittleEndian.AppendUint32(packed, uint32(id))
	}

	client := kvscoutv1connect.NewScoreServiceClient(http.DefaultClient, *server)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	res, err := client.Score(ctx, connect.NewRequest(&kvscoutv1.ScoreRequest{
		Model:  *model,
		Tokens: &kvscoutv1.Tokens{Packed: packed},
	}))
	if err != nil {
		log.Fatal(err) // a typed error with a reason, never a zero score in disguise
	}
	for _, w := range res.Msg.GetWorkers() {
		fmt.Printf("%s/%d score %.3f, %d of %d tokens reusable, %v\n", w.GetWorkerId(), w.GetRank(), w.GetScore(),
			w.GetReusableTokens(), res.Msg.GetPromptTokens(), w.GetBound().GetKind())
	}
}
