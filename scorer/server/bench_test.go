package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

// deepHandler is the handler that every transport calls, before 64 workers that hold a prompt of 16,384 tokens more or less
// deep.
func deepHandler(tb testing.TB) (http.Handler, []uint32) {
	tb.Helper()
	const tokens, workers = 16384, 64
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	tb.Cleanup(fleet.Close)
	prompt := make([]uint32, tokens)
	for i := range prompt {
		prompt[i] = uint32(i * 7919 % 128000)
	}
	for i := range workers {
		fillWorker(tb, fleet, fmt.Sprintf("decode-worker-pod-%d", 1000+i), prompt[:tokens/workers*(workers-i)])
	}
	return server.New(server.Options{
		Score: scorerpc.New(index, fleet, scorerpc.Options{}), Index: indexrpc.New(index, fleet, indexrpc.Options{}), Logger: slog.New(slog.DiscardHandler),
	}).Handler(), prompt
}

// A call makes few objects, however long its prompt is and however many workers it is about.
func TestScore_Allocates(t *testing.T) {
	handler, prompt := deepHandler(t)
	body := []byte{0x12, 0x84, 0x80, 0x04, 0x0a, 0x80, 0x80, 0x04} // tokens.packed of 65,536 bytes
	for _, token := range prompt {
		body = binary.LittleEndian.AppendUint32(body, token)
	}
	out := &answer{header: make(http.Header)}
	got := testing.AllocsPerRun(50, func() { askOnce(t, handler, out, "application/proto", body) })
	if got > 80 {
		t.Errorf("%v objects", got)
	}
}

// BenchmarkScore is one call of Score without its network.
func BenchmarkScore(b *testing.B) {
	handler, prompt := deepHandler(b)
	bytesOf := func(req *kvscoutv1.ScoreRequest) []byte {
		data, err := proto.Marshal(req)
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	var packed, keys []byte
	for _, t := range prompt {
		packed = binary.LittleEndian.AppendUint32(packed, t)
	}
	for _, k := range indexer.Keys(prompt, nil, 16, false, indexer.Namespace{}) {
		keys = binary.LittleEndian.AppendUint64(keys, uint64(k))
	}
	b.Run("tokens", func(b *testing.B) {
		ask(b, handler, "application/proto", bytesOf(&kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed}}))
	})
	b.Run("base64", func(b *testing.B) {
		ask(b, handler, "application/json", []byte(`{"tokens":{"packed":"`+base64.StdEncoding.EncodeToString(packed)+`"}}`))
	})
	b.Run("ids", func(b *testing.B) {
		ids, err := json.Marshal(prompt)
		if err != nil {
			b.Fatal(err)
		}
		ask(b, handler, "application/json", []byte(`{"tokens":{"ids":`+string(ids)+`}}`))
	})
	b.Run("hashes", func(b *testing.B) {
		ask(b, handler, "application/proto", bytesOf(&kvscoutv1.ScoreRequest{BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 16, Packed: keys}}))
	})
}

func fillWorker(b testing.TB, fleet *ingest.Fleet, id string, prompt []uint32) {
	b.Helper()
	if _, err := fleet.Register(ingest.Worker{ID: id, Model: "m", Sources: []events.Source{{Engine: events.EngineVLLM}}}); err != nil {
		b.Fatal(err)
	}
	hashes := make([]int, len(prompt)/16)
	for i := range hashes {
		hashes[i] = i + 1
	}
	payload, err := msgpack.Marshal([]any{1.5, []any{[]any{"BlockStored", hashes, nil, prompt, 16, nil, "GPU"}}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fleet.Publish(id, 0, []events.Message{{Payload: payload}}); err != nil {
		b.Fatal(err)
	}
}

// answer is what a handler answers, in memory that is used again.
type answer struct {
	header http.Header
	body   bytes.Buffer
	code   int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func ask(b *testing.B, handler http.Handler, kind string, body []byte) {
	b.Helper()
	out := &answer{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		askOnce(b, handler, out, kind, body)
	}
}

func askOnce(tb testing.TB, handler http.Handler, out *answer, kind string, body []byte) {
	tb.Helper()
	clear(out.header)
	out.body.Reset()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, kvscoutv1connect.ScoreServiceScoreProcedure, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {kind}, "Connect-Protocol-Version": {"1"}}
	handler.ServeHTTP(out, req)
	if out.body.Len() < 1000 {
		tb.Fatalf("answer %d: %s", out.code, out.body.Bytes())
	}
}
