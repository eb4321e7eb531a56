package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"

	"github.com/kvscout/kvscout/test/testport"
)

const (
	batchMethod   = "kvscout.v1.ScoreService/ScoreBatch"
	routedMethod  = "kvscout.v1.ScoreService/ReportRouted"
	outcomeMethod = "kvscout.v1.ScoreService/ReportOutcome"
	dumpMethod    = "kvscout.v1.IndexService/Dump"
	clearMethod   = "kvscout.v1.IndexService/Clear"
)

// A router's whole day from Python's grpcio: w0 holds 1..8 in blocks of 4, and is asked for nine tokens and more.
func TestContract_PythonGRPC(t *testing.T) {
	t.Parallel()
	s := asked(t)
	stdout, err := exec.Command(python, append([]string{filepath.Join("testdata", "route.py"), s.addr, "m", "w0"}, strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13")...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(stdout, &out); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	read := func(name string, m proto.Message) {
		t.Helper()
		if err := protojson.Unmarshal(out[name], m); err != nil {
			t.Fatalf("%s: %v in %s", name, err, out[name])
		}
	}
	batch, routed, outcome, cleared := new(kvscoutv1.ScoreBatchResponse), new(kvscoutv1.ReportRoutedResponse), new(kvscoutv1.ReportOutcomeResponse), new(kvscoutv1.ClearResponse)
	read("ScoreBatch", batch)
	same(t, "in a batch", batch.Results[0].Response.Workers[0], answer{8, 8, exact, ""})
	if batch.Results[1].Error.GetReason() != "NO_PROMPT" {
		t.Errorf("batch: %v", batch.Results[1])
	}
	if read("ReportRouted", routed); routed.CreditedTokens != 12 {
		t.Errorf("routed: %v", routed)
	}
	if read("ReportOutcome", outcome); outcome.PredictedTokens != 8 || outcome.Accuracy.GetEqual() != 1 {
		t.Errorf("outcome: %v", outcome)
	}
	if read("Clear", cleared); cleared.Sources != 1 || cleared.Blocks != 2 {
		t.Errorf("clear: %v", cleared)
	}
	if string(out["error"]) != `"FAILED_PRECONDITION"` {
		t.Errorf("an outcome twice: %s", out["error"])
	}
	streamed(t, out["ScoreStream"])
	if !strings.Contains(string(out["Dump"]), `"blockSize": 4`) {
		t.Errorf("dump: %s", out["Dump"])
	}
}

// streamed checks that each of 200 requests was answered once.
func streamed(t *testing.T, list json.RawMessage) {
	t.Helper()
	var answers []json.RawMessage
	if err := json.Unmarshal(list, &answers); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, text := range answers {
		m := new(kvscoutv1.ScoreStreamResponse)
		if err := protojson.Unmarshal(text, m); err != nil {
			t.Fatal(err)
		}
		seen[m.Result.Id] = true
		same(t, "in a stream", m.Result.Response.Workers[0], answer{8, 8, exact, ""})
	}
	for i := range 200 {
		if !seen[strconv.Itoa(i)] {
			t.Errorf("request %d has no answer among %d", i, len(answers))
		}
	}
}

// form is how a unary message goes over HTTP with curl alone.
type form struct {
	contentType string
	encode      func(proto.Message) ([]byte, error)
	decode      func([]byte, proto.Message) error
}

// frame puts a message into the envelope of gRPC-Web and of Connect streams: flags, length, message.
func frame(m []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m))), m...)
}

// frames are the messages of an enveloped answer, its trailers (gRPC-Web 0x80, Connect 0x02) left out.
func frames(b []byte) (out [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 5 || int(binary.BigEndian.Uint32(b[1:]))+5 > len(b) {
			return nil, fmt.Errorf("torn frame of %d bytes", len(b))
		}
		end := 5 + int(binary.BigEndian.Uint32(b[1:]))
		if b[0] == 0 {
			out = append(out, b[5:end])
		}
		b = b[end:]
	}
	return out, nil
}

var forms = map[string]form{
	"connect json":  {"application/json", protojson.Marshal, protojson.Unmarshal},
	"connect proto": {"application/proto", proto.Marshal, proto.Unmarshal},
	"grpc-web": {"application/grpc-web+proto",
		func(m proto.Message) ([]byte, error) { b, err := proto.Marshal(m); return frame(b), err },
		func(b []byte, m proto.Message) error {
			list, err := frames(b)
			if err != nil || len(list) != 1 {
				return fmt.Errorf("%d messages, %w", len(list), err)
			}
			return proto.Unmarshal(list[0], m)
		}},
}

// curlBytes sends a body with the program curl.
func (s *server) curlBytes(t testing.TB, method, contentType string, body []byte) []byte {
	t.Helper()
	cmd := exec.Command("/usr/bin/curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "60",
		"--header", "Content-Type: "+contentType, "--data-binary", "@-", s.url+"/"+method)
	cmd.Stdin = bytes.NewReader(body)
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %s: %v: %s", method, err, b)
	}
	return b
}

// The same day with curl, in each form that plain HTTP/1.1 can carry.
func TestContract_Curl(t *testing.T) {
	t.Parallel()
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := asked(t)
			call := func(method string, in, out proto.Message) {
				t.Helper()
				body, err := f.encode(in)
				if err != nil {
					t.Fatal(err)
				}
				if err := f.decode(s.curlBytes(t, method, f.contentType, body), out); err != nil {
					t.Fatalf("%s: %v", method, err)
				}
			}
			var prompt kvscoutv1.Tokens
			for i := range 13 {
				prompt.Ids = append(prompt.Ids, int64(i+1))
			}
			batch := new(kvscoutv1.ScoreBatchResponse)
			call(batchMethod, &kvscoutv1.ScoreBatchRequest{Requests: []*kvscoutv1.ScoreRequest{{Id: "a", Tokens: &prompt, Remember: true, Explain: true}}}, batch)
			res := batch.Results[0].GetResponse()
			same(t, name, res.Workers[0], answer{8, 8, exact, ""})
			if g := res.Workers[0].GetExplanation().GetGroups(); len(g) != 1 || g[0].LeadingBlocks != 2 || g[0].End != kvscoutv1.MatchEnd_MATCH_END_NOT_HELD {
				t.Errorf("explained: %v", g)
			}
			routed := new(kvscoutv1.ReportRoutedResponse)
			if call(routedMethod, &kvscoutv1.ReportRoutedRequest{WorkerId: "w0", ScoreId: res.ScoreId}, routed); routed.CreditedTokens != 12 {
				t.Errorf("routed: %v", routed)
			}
			outcome := new(kvscoutv1.ReportOutcomeResponse)
			call(outcomeMethod, &kvscoutv1.ReportOutcomeRequest{WorkerId: "w0", ScoreId: res.ScoreId, PromptTokens: 13, CachedTokens: 4}, outcome)
			if a := outcome.Accuracy; a.GetOver() != 1 || a.GetOverTokens() != 4 || a.GetWrong() != 1 {
				t.Errorf("outcome: %v", outcome)
			}
			stats := new(kvscoutv1.GetStatsResponse)
			if call(statsMethod, new(kvscoutv1.GetStatsRequest), stats); stats.Stats.Sources[0].Accuracy.GetOutcomes() != 1 ||
				stats.Stats.Readiness.GetState() != kvscoutv1.ServiceState_SERVICE_STATE_READY {
				t.Errorf("stats: %v", stats)
			}
			cleared := new(kvscoutv1.ClearResponse)
			if call(clearMethod, &kvscoutv1.ClearRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}}, cleared); cleared.Blocks != 2 {
				t.Errorf("clear: %v", cleared)
			}
		})
	}
}

// A stream of the server to curl, in Connect's JSON and in gRPC-Web.
func TestContract_CurlDump(t *testing.T) {
	t.Parallel()
	s := asked(t)
	for contentType, decode := range map[string]func([]byte, proto.Message) error{
		"application/connect+json":   protojson.Unmarshal,
		"application/connect+proto":  proto.Unmarshal,
		"application/grpc-web+proto": proto.Unmarshal,
	} {
		body := []byte("{}")
		if !strings.HasSuffix(contentType, "json") {
			body = nil
		}
		list, err := frames(s.curlBytes(t, dumpMethod, contentType, frame(body)))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d messages, %v", contentType, len(list), err)
		}
		m := new(kvscoutv1.DumpResponse)
		if err := decode(list[0], m); err != nil || m.WorkerId != "w0" || len(m.Blocks) != 2 || m.Blocks[0].BlockSize != 4 {
			t.Errorf("%s: %v, %v", contentType, m, err)
		}
	}
}

// Health waits for every configured worker, of which one cannot be reached; scores are answered meanwhile, and say how
// fresh they are. When that worker is given up, health says SERVING.
func TestHealth_WaitsForConfiguredWorkers(t *testing.T) {
	t.Parallel()
	dead := fmt.Sprintf("id=dead,engine=vllm,model=m,block-size=4,events=tcp://127.0.0.1:%d", testport.Free(t, 1))
	s := asked(t, "--ready-grace", "1h", "--source", dead)
	conn, ctx := s.grpc(t)
	health := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		t.Helper()
		resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Status
	}
	for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{
		"": healthpb.HealthCheckResponse_NOT_SERVING, "kvscout.v1.ScoreService": healthpb.HealthCheckResponse_NOT_SERVING,
		"kvscout.v1.IndexService": healthpb.HealthCheckResponse_SERVING,
	} {
		if got := health(service); got != want {
			t.Errorf("%q is %v, want %v", service, got, want)
		}
	}
	stats := new(kvscoutv1.GetStatsResponse)
	s.call(t, statsMethod, obj{}, stats)
	if r := stats.Stats.Readiness; r.State != kvscoutv1.ServiceState_SERVICE_STATE_STARTING || len(r.Waiting) != 1 || r.Waiting[0] != "dead/0" {
		t.Errorf("readiness %v", r)
	}
	scored := new(kvscoutv1.ScoreResponse)
	s.call(t, scoreMethod, obj{"tokens": obj{"packed": packed(span(1, 9))}}, scored)
	same(t, "while waiting", scored.Workers[0], answer{8, 8, exact, ""})
	s.call(t, deregisterMethod, obj{"workerId": "dead"}, new(kvscoutv1.DeregisterWorkerResponse))
	eventually(t, "health says SERVING", func() bool { return health("") == healthpb.HealthCheckResponse_SERVING })
}
