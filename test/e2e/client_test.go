package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// obj is a JSON object, written as a user writes it.
type obj = map[string]any

const (
	scoreMethod      = "kvscout.v1.ScoreService/Score"
	registerMethod   = "kvscout.v1.IndexService/RegisterWorker"
	deregisterMethod = "kvscout.v1.IndexService/DeregisterWorker"
	listMethod       = "kvscout.v1.IndexService/ListWorkers"
	statsMethod      = "kvscout.v1.IndexService/GetStats"
	inspectMethod    = "kvscout.v1.IndexService/Inspect"
)

var httpClient = &http.Client{Timeout: patience}

// post sends a Connect request in JSON over HTTP/1.1.
func (s *server) post(method string, body []byte) (status int, answer []byte, err error) {
	remember(body)
	resp, err := httpClient.Post(s.url+"/"+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// curl sends the same with the program curl.
func (s *server) curl(t testing.TB, method string, in any, out proto.Message) {
	t.Helper()
	cmd := exec.Command("/usr/bin/curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "60",
		"--header", "Content-Type: application/json", "--data-binary", "@-", s.url+"/"+method)
	cmd.Stdin = bytes.NewReader(asJSON(t, in))
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %s: %v: %s", method, err, b)
	}
	if err := protojson.Unmarshal(b, out); err != nil {
		t.Fatalf("curl %s: %v in %s", method, err, b)
	}
}

// call sends in and decodes the answer into out. An unknown field in the answer fails the test.
func (s *server) call(t testing.TB, method string, in any, out proto.Message) {
	t.Helper()
	status, b, err := s.post(method, asJSON(t, in))
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", method, status, err, b)
	}
	if err := protojson.Unmarshal(b, out); err != nil {
		t.Fatalf("%s: %v in %s", method, err, b)
	}
}

// failure is an error as a Connect client sees it.
type failure struct {
	Status int    // of HTTP
	Code   string // of Connect
	Reason string // of the ErrorInfo of domain kvscout
}

// fails sends in and expects an error.
func (s *server) fails(t testing.TB, method string, in any, want failure) (message string) {
	t.Helper()
	status, b, err := s.post(method, asJSON(t, in))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	var e struct {
		Code, Message string
		Details       []struct{ Type, Value string }
	}
	if err := json.Unmarshal(b, &e); err != nil || status == http.StatusOK {
		t.Fatalf("%s: status %d is no error: %.300s", method, status, b)
	}
	got := failure{Status: status, Code: e.Code}
	for _, d := range e.Details {
		if d.Type != "google.rpc.ErrorInfo" {
			continue
		}
		info := new(errdetails.ErrorInfo)
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(d.Value, "="))
		if err != nil || proto.Unmarshal(raw, info) != nil || info.Domain != "kvscout" {
			t.Errorf("%s: bad ErrorInfo %q", method, d.Value)
		}
		got.Reason = info.Reason
	}
	if got != want {
		t.Errorf("%s: got %+v (%s), want %+v", method, got, e.Message, want)
	}
	return e.Message
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	if b, ok := v.([]byte); ok {
		return b
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// packed is the base64 of little-endian int32, as a request in JSON carries tokens.
func packed(tokens []uint32) string {
	b := make([]byte, 0, 4*len(tokens))
	for _, v := range tokens {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// span is the tokens first..last.
func span(first, last uint32) []uint32 {
	var out []uint32
	for v := first; v <= last; v++ {
		out = append(out, v)
	}
	return out
}

// scores asks for the scores of tokens, with more fields of the request if given.
func (s *server) scores(t testing.TB, tokens []uint32, more obj) *kvscoutv1.ScoreResponse {
	t.Helper()
	in := obj{"tokens": obj{"packed": packed(tokens)}}
	for k, v := range more {
		in[k] = v
	}
	out := new(kvscoutv1.ScoreResponse)
	s.call(t, scoreMethod, in, out)
	return out
}

// score asks for one worker's score, rank 0.
func (s *server) score(t testing.TB, worker string, tokens []uint32) *kvscoutv1.WorkerScore {
	t.Helper()
	return s.scoreRank(t, worker, 0, tokens, nil)
}

func (s *server) scoreRank(t testing.TB, worker string, rank uint32, tokens []uint32, more obj) *kvscoutv1.WorkerScore {
	t.Helper()
	resp := s.scores(t, tokens, more)
	for _, w := range resp.Workers {
		if w.WorkerId == worker && w.Rank == rank {
			return w
		}
	}
	t.Fatalf("no score of %s/%d in %v", worker, rank, resp)
	return nil
}

// stats returns the counters of one source.
func (s *server) stats(t testing.TB, worker string, rank uint32) *kvscoutv1.SourceStats {
	t.Helper()
	out := new(kvscoutv1.GetStatsResponse)
	s.call(t, statsMethod, obj{}, out)
	for _, src := range out.Stats.Sources {
		if src.WorkerId == worker && src.Rank == rank {
			return src
		}
	}
	t.Fatalf("no stats of %s/%d in %v", worker, rank, out)
	return nil
}

// await polls a source's counters until ok is true of them.
func (s *server) await(t testing.TB, what, worker string, rank uint32, ok func(*kvscoutv1.SourceStats) bool) *kvscoutv1.SourceStats {
	t.Helper()
	var last *kvscoutv1.SourceStats
	if !poll(func() bool {
		last = s.stats(t, worker, rank)
		return ok(last)
	}) {
		t.Fatalf("%s/%d not within %v: %s; it is at %v", worker, rank, patience, what, last)
	}
	return last
}

// reached polls until the last batch applied is number seq, in state live unless another is given.
func (s *server) reached(t testing.TB, worker string, rank uint32, seq uint64, states ...kvscoutv1.FreshnessState) *kvscoutv1.SourceStats {
	t.Helper()
	want := kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE
	if len(states) > 0 {
		want = states[0]
	}
	return s.await(t, fmt.Sprintf("batch %d, %v", seq, want), worker, rank, func(st *kvscoutv1.SourceStats) bool {
		return lastIs(seq)(st) && st.Freshness.State == want
	})
}

// lastIs is true of a source whose last batch applied is number seq.
func lastIs(seq uint64) func(*kvscoutv1.SourceStats) bool {
	return func(st *kvscoutv1.SourceStats) bool {
		return st.Freshness.LastSequence != nil && *st.Freshness.LastSequence == seq
	}
}

// inState polls until the source is in a state.
func (s *server) inState(t testing.TB, worker string, rank uint32, want kvscoutv1.FreshnessState) *kvscoutv1.SourceStats {
	t.Helper()
	return s.await(t, want.String(), worker, rank, func(st *kvscoutv1.SourceStats) bool { return st.Freshness.State == want })
}

// answer is what tests compare of a score.
type answer struct {
	Held, Reusable uint32
	Bound          kvscoutv1.BoundKind
	Reasons        string
}

func answerOf(w *kvscoutv1.WorkerScore) answer {
	var reasons []string
	for _, r := range w.Bound.Reasons {
		reasons = append(reasons, strings.TrimPrefix(r.String(), "BOUND_REASON_"))
	}
	return answer{w.HeldTokens, w.ReusableTokens, w.Bound.Kind, strings.Join(reasons, " ")}
}

const (
	exact    = kvscoutv1.BoundKind_BOUND_KIND_EXACT
	upper    = kvscoutv1.BoundKind_BOUND_KIND_UPPER
	lower    = kvscoutv1.BoundKind_BOUND_KIND_LOWER
	estimate = kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE

	stateUnknown = kvscoutv1.FreshnessState_FRESHNESS_STATE_UNKNOWN
	stateLive    = kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE
	stateGap     = kvscoutv1.FreshnessState_FRESHNESS_STATE_GAP
	stateStale   = kvscoutv1.FreshnessState_FRESHNESS_STATE_STALE
	connecting   = kvscoutv1.FreshnessState_FRESHNESS_STATE_CONNECTING
)

// same fails the test unless the score is want.
func same(t testing.TB, what string, w *kvscoutv1.WorkerScore, want answer) {
	t.Helper()
	if got := answerOf(w); got != want {
		t.Errorf("%s: got %+v, want %+v; freshness %v", what, got, want, w.Freshness)
	}
	if !w.Known {
		t.Errorf("%s: not known", what)
	}
}
