package indexrpc_test

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a service behind a real HTTP server, and a client of it.
type rig struct {
	kvscoutv1connect.IndexServiceClient
	fleet *ingest.Fleet
	index *indexer.Index

	service *indexrpc.Service
}

func start(t testing.TB, opts indexrpc.Options, fleetOpts ...ingest.Options) *rig {
	t.Helper()
	return startOver(t, indexer.New(indexer.Options{}), opts, fleetOpts...)
}

// startOver is start for an index.
func startOver(t testing.TB, index *indexer.Index, opts indexrpc.Options, fleetOpts ...ingest.Options) *rig {
	t.Helper()
	fleet := ingest.New(index, append(fleetOpts, ingest.Options{})[0])
	t.Cleanup(fleet.Close)
	mux := http.NewServeMux()
	service := indexrpc.New(index, fleet, opts)
	mux.Handle(kvscoutv1connect.NewIndexServiceHandler(service))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rig{kvscoutv1connect.NewIndexServiceClient(server.Client(), server.URL), fleet, index, service}
}

// register adds a vLLM worker that is pushed to, for model "m" unless edit says otherwise.
func (r *rig) register(t testing.TB, id string, edit ...func(*kvscoutv1.WorkerSpec)) *kvscoutv1.RegisterWorkerResponse {
	t.Helper()
	spec := &kvscoutv1.WorkerSpec{WorkerId: id, Model: "m", Engine: "vllm"}
	for _, e := range edit {
		e(spec)
	}
	resp, err := r.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec}))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Msg
}

func (r *rig) publish(t testing.TB, id string, batches ...*kvscoutv1.RawBatch) *kvscoutv1.PublishResponse {
	t.Helper()
	resp, err := r.Publish(t.Context(), connect.NewRequest(&kvscoutv1.PublishRequest{WorkerId: id, Batches: batches}))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Msg
}

func batch(seq uint64, payload []byte) *kvscoutv1.RawBatch {
	return &kvscoutv1.RawBatch{Sequence: seq, Payload: payload}
}

// unhex reads a payload as the wire reference spells it.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Payloads made with Python's msgpack, blocks of 4 tokens 1..8.
const (
	// stored8 is [1.5, [["BlockStored", [-2, 3], nil, [1..8], 4, nil]]].
	stored8 = "92cb3ff80000000000009196ab426c6f636b53746f72656492fe03c098010203040506070804c0"
	// storedAndGone stores two blocks, removes the second, and clears everything.
	storedAndGone = "93cb3ff8000000000000939cab426c6f636b53746f72656492cf1e0b2e028ef071cbcfefad121d154ab2d6c098010203040506070804c0a3475055c092c0c000ae66756c6c5f617474656e74696f6ec094ac426c6f636b52656d6f76656491cfefad121d154ab2d6a34750550091b0416c6c426c6f636b73436c656172656400"
)

// payload is one batch of array events as older engines send them.
func payload(t testing.TB, events ...[]any) []byte {
	t.Helper()
	b, err := msgpack.Marshal([]any{1.5, events})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stored announces blocks of 4 tokens under the hashes first, first+1, ...
func stored(first int, parent any, medium string, tokens ...uint32) []any {
	var hashes []int
	for i := range len(tokens) / 4 {
		hashes = append(hashes, first+i)
	}
	return []any{"BlockStored", hashes, parent, tokens, 4, nil, medium}
}

func tokens(ids ...int64) *kvscoutv1.Tokens { return &kvscoutv1.Tokens{Ids: ids} }

// wantReason checks an error's code and its ErrorInfo.
func wantReason(t testing.TB, err error, code connect.Code, reason string) {
	t.Helper()
	if got := connect.CodeOf(err); err == nil || got != code {
		t.Errorf("error %v: code %v, want %v", err, got, code)
	}
	if got := reasonOf(err); got != reason {
		t.Errorf("error %v: reason %q, want %q", err, got, reason)
	}
}

// reasonOf is the reason that reached the client, "" without one of our domain.
func reasonOf(err error) string {
	if info := detail[*errdetails.ErrorInfo](err); info.GetDomain() == "kvscout" {
		return info.GetReason()
	}
	return ""
}

// retryOf is the delay that reached the client; 0 without one.
func retryOf(err error) time.Duration {
	return detail[*errdetails.RetryInfo](err).GetRetryDelay().AsDuration()
}

func detail[T any](err error) T {
	var none T
	var e *connect.Error
	if !errors.As(err, &e) {
		return none
	}
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if found, ok := m.(T); ok {
				return found
			}
		}
	}
	return none
}
