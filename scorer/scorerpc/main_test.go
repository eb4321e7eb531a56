package scorerpc_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/client"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the real server on a loopback port, with a client for each protocol.
type rig struct {
	kvscoutv1connect.ScoreServiceClient
	kvscoutv1connect.RenderServiceClient
	byProtocol map[string]kvscoutv1connect.ScoreServiceClient
	index      *indexer.Index
	fleet      *ingest.Fleet
	service    *scorerpc.Service
	next       map[string]uint64 // sequence numbers by worker
	url        string
}

func start(t testing.TB, opts scorerpc.Options, fleetOpts ...ingest.Options) *rig {
	t.Helper()
	r := &rig{index: indexer.New(indexer.Options{}), next: make(map[string]uint64)}
	r.fleet = ingest.New(r.index, append(fleetOpts, ingest.Options{})[0])
	t.Cleanup(r.fleet.Close)
	r.service = scorerpc.New(r.index, r.fleet, opts)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Score: r.service, Render: r.service, Index: indexrpc.New(r.index, r.fleet, indexrpc.Options{})})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }() // ended by cancel, waited for below
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	r.dial(t, "http://"+l.Addr().String())
	return r
}

func (r *rig) dial(t testing.TB, url string) {
	r.url = url
	h1, h2 := new(http.Protocols), new(http.Protocols)
	h1.SetHTTP1(true)
	h2.SetUnencryptedHTTP2(true)
	client := func(p *http.Protocols) *http.Client {
		transport := &http.Transport{Protocols: p}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	r.ScoreServiceClient = kvscoutv1connect.NewScoreServiceClient(client(h1), url)
	r.RenderServiceClient = kvscoutv1connect.NewRenderServiceClient(client(h1), url)
	r.byProtocol = map[string]kvscoutv1connect.ScoreServiceClient{
		"connect":  r.ScoreServiceClient,
		"grpc":     kvscoutv1connect.NewScoreServiceClient(client(h2), url, connect.WithGRPC()),
		"grpc-web": kvscoutv1connect.NewScoreServiceClient(client(h1), url, connect.WithGRPCWeb()),
	}
}

func (r *rig) score(t testing.TB, req *kvscoutv1.ScoreRequest) *kvscoutv1.ScoreResponse {
	t.Helper()
	resp, err := r.Score(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Msg
}

// worker registers a worker of one rank; edit may change it.
func (r *rig) worker(t testing.TB, id, model string, engine events.Engine, edit ...func(*ingest.Worker)) {
	t.Helper()
	w := ingest.Worker{ID: id, Model: model, Sources: []events.Source{{Engine: engine}}}
	for _, e := range edit {
		e(&w)
	}
	if _, err := r.fleet.Register(w); err != nil {
		t.Fatal(err)
	}
}

// publish pushes one batch of events as the next of the worker's stream.
func (r *rig) publish(t testing.TB, id string, list ...[]any) {
	t.Helper()
	payload, err := msgpack.Marshal([]any{1.5, list})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.fleet.Publish(id, 0, []events.Message{{Seq: r.next[id], Payload: payload}}); err != nil {
		t.Fatal(err)
	}
	r.next[id]++
}

// store is a BlockStored of blocks of size tokens under the hashes first, first+1, ... as vLLM's array form has it:
// adapter is lora_name, salt goes into the extra keys of the first block.
type store struct {
	first         int
	parent        any
	tokens        []uint32
	size          int
	medium        string
	adapter, salt string
}

func (s store) event() []any {
	if s.medium == "" {
		s.medium = "GPU"
	}
	var hashes, extras []any
	for i := range len(s.tokens) / s.size {
		hashes = append(hashes, s.first+i)
		extras = append(extras, nil)
	}
	var adapter any
	var keys []any
	if s.adapter != "" {
		adapter = s.adapter
		keys = append(keys, s.adapter)
	}
	if s.salt != "" {
		keys = append(keys, s.salt)
	}
	if keys != nil {
		extras[0] = keys
	}
	return []any{"BlockStored", hashes, s.parent, s.tokens, s.size, nil, s.medium, adapter, extras}
}

func seq(from, to uint32) []uint32 {
	var out []uint32
	for v := from; v <= to; v++ {
		out = append(out, v)
	}
	return out
}

func ids(tokens []uint32) *kvscoutv1.Tokens {
	out := new(kvscoutv1.Tokens)
	for _, v := range tokens {
		out.Ids = append(out.Ids, int64(v))
	}
	return out
}

// fakeVLLM answers as a vLLM render server would. It is not ours: real ones are tested in package render.
type fakeVLLM struct {
	asked  atomic.Int32
	answer atomic.Pointer[string] // of 200
	body   atomic.Pointer[string] // of the last request
	header atomic.Pointer[http.Header]
}

// renderer starts the fake and returns a real client of it. A request with the header X-Fault gets that status.
func (f *fakeVLLM) renderer(t testing.TB, answer string, edit ...func(*render.Options)) render.Renderer {
	t.Helper()
	f.answer.Store(&answer)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		f.asked.Add(1)
		data, _ := io.ReadAll(req.Body)
		body := string(data)
		f.body.Store(&body)
		f.header.Store(&req.Header)
		switch fault := req.Header.Get("X-Fault"); fault {
		case "":
			_, _ = io.WriteString(w, *f.answer.Load())
		case "hang":
			<-req.Context().Done()
		default:
			status, _ := strconv.Atoi(fault)
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"said by the engine about the model","type":"NotFoundError","param":"model"}}`)
		}
	}))
	t.Cleanup(fake.Close)
	opts := render.Options{URL: fake.URL, Protocol: render.ProtocolVLLM}
	for _, e := range edit {
		e(&opts)
	}
	c, err := render.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func chat(body string) *kvscoutv1.HttpRequest {
	return &kvscoutv1.HttpRequest{Path: "/v1/chat/completions", Body: []byte(body)}
}

func wantReason(t testing.TB, err error, code connect.Code, reason string) {
	t.Helper()
	if got := connect.CodeOf(err); err == nil || got != code {
		t.Errorf("error %v: code %v, want %v", err, got, code)
	}
	if got := client.Reason(err); got != reason {
		t.Errorf("error %v: reason %q, want %s", err, got, reason)
	}
}

func retryOf(err error) time.Duration {
	delay, _ := client.RetryAfter(err)
	return delay
}
