package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

func (s *server) grpc(t testing.TB) (*grpc.ClientConn, context.Context) {
	t.Helper()
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return conn, ctx
}

// grpc-go on the same port: Score, its errors, health, reflection, a stream of statistics.
func TestGRPC(t *testing.T) {
	t.Parallel()
	s := asked(t)
	conn, ctx := s.grpc(t)

	t.Run("score", func(t *testing.T) {
		in := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}}}
		out := new(kvscoutv1.ScoreResponse)
		if err := conn.Invoke(ctx, "/"+scoreMethod, in, out); err != nil {
			t.Fatal(err)
		}
		same(t, "over gRPC", out.Workers[0], answer{8, 8, exact, ""})
	})
	t.Run("error", func(t *testing.T) {
		err := conn.Invoke(ctx, "/"+scoreMethod, &kvscoutv1.ScoreRequest{Model: "other", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}, new(kvscoutv1.ScoreResponse))
		st, _ := status.FromError(err)
		details := st.Details()
		i := slices.IndexFunc(details, func(d any) bool { _, ok := d.(*errdetails.ErrorInfo); return ok })
		if st.Code() != codes.NotFound || i < 0 || details[i].(*errdetails.ErrorInfo).Reason != "UNKNOWN_MODEL" {
			t.Errorf("got %v with %v", err, details)
		}
	})
	t.Run("health", func(t *testing.T) {
		for _, service := range []string{"", "kvscout.v1.ScoreService", "kvscout.v1.IndexService"} {
			eventually(t, "health says SERVING", func() bool { // its worker is replayed, which is seen a moment later
				resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
				return err == nil && resp.Status == healthpb.HealthCheckResponse_SERVING
			})
		}
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "nobody"})
		if status.Code(err) != codes.NotFound {
			t.Errorf("an unknown service: %v", err)
		}
	})
	t.Run("reflection", func(t *testing.T) { reflects(ctx, t, conn) })
	t.Run("stats stream", func(t *testing.T) { streamsStats(ctx, t, conn) })
}

func reflects(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, svc := range resp.GetListServicesResponse().GetService() {
		names = append(names, svc.Name)
	}
	for _, want := range []string{"kvscout.v1.ScoreService", "kvscout.v1.IndexService"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in %v", want, names)
		}
	}
}

func streamsStats(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/kvscout.v1.IndexService/StreamStats")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(new(kvscoutv1.StreamStatsRequest)), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // at once, and after a second
		out := new(kvscoutv1.StreamStatsResponse)
		if err := stream.RecvMsg(out); err != nil || len(out.Stats.Sources) != 1 || out.Stats.Sources[0].StoredEvents != 1 {
			t.Fatalf("%v, %v", out, err)
		}
	}
}

// Python's grpcio, which knows only the address: reflection tells it the rest.
func TestPythonGRPC(t *testing.T) {
	t.Parallel()
	s := asked(t)
	out, err := exec.Command(python, append([]string{filepath.Join("testdata", "ask.py"), s.addr, "m", "w0"}, strings.Fields("1 2 3 4 5 6 7 8 9")...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	resp := new(kvscoutv1.ScoreResponse)
	if err := protojson.Unmarshal(out, resp); err != nil || len(resp.Workers) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	same(t, "from Python", resp.Workers[0], answer{8, 8, exact, ""})
}

// Score changes nothing, so it may be asked by GET.
func TestConnectGet(t *testing.T) {
	t.Parallel()
	s := asked(t)
	q := url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {`{"tokens":{"ids":[1,2,3,4,5,6,7,8,9]}}`}}
	resp, err := httpClient.Get(s.url + "/" + scoreMethod + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	out := new(kvscoutv1.ScoreResponse)
	if err != nil || resp.StatusCode != http.StatusOK || protojson.Unmarshal(b, out) != nil || len(out.Workers) != 1 {
		t.Fatalf("%v, %v: %s", resp.Status, err, b)
	}
	same(t, "by GET", out.Workers[0], answer{8, 8, exact, ""})
}

// kvscout runs a command of the program to its end.
func kvscout(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = clearedEnv()
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// The program's own client commands print the proto's JSON and nothing else, over each protocol.
func TestCommands_JSON(t *testing.T) {
	t.Parallel()
	s := asked(t)
	run := func(out proto.Message, stdin string, args ...string) {
		t.Helper()
		stdout, stderr, code := kvscout(t, stdin, append(args, "--server", s.url, "--json")...)
		if err := protojson.Unmarshal([]byte(stdout), out); err != nil || code != 0 {
			t.Fatalf("kvscout %v: exit %d, %v: %s%s", args, code, err, stdout, stderr)
		}
	}
	ids := string(asJSON(t, span(1, 9)))
	for _, protocol := range []string{"connect", "grpc", "grpcweb"} {
		score := new(kvscoutv1.ScoreResponse)
		run(score, ids, "score", "--model", "m", "--tokens", "-", "--protocol", protocol)
		if len(score.Workers) != 1 {
			t.Fatalf("one worker wanted: %v", score)
		}
		same(t, protocol, score.Workers[0], answer{8, 8, exact, ""})
	}
	workers := new(kvscoutv1.ListWorkersResponse)
	if run(workers, "", "workers"); len(workers.Workers) != 1 || workers.Workers[0].Spec.WorkerId != "w0" {
		t.Errorf("workers: %v", workers)
	}
	stats := new(kvscoutv1.GetStatsResponse)
	if run(stats, "", "stats"); len(stats.Stats.GetSources()) != 1 || stats.Stats.Sources[0].StoredEvents != 1 || stats.Stats.HolderBlocks != 2 {
		t.Errorf("stats: %v", stats)
	}
	inspect := new(kvscoutv1.InspectResponse)
	if run(inspect, "", "inspect", "--worker", "w0"); len(inspect.Sources) != 1 || len(inspect.Sources[0].Scopes) != 1 || inspect.Sources[0].Scopes[0].Blocks != 2 {
		t.Errorf("inspect worker: %v", inspect)
	}
	file := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(file, []byte(ids), 0o600); err != nil {
		t.Fatal(err)
	}
	inspect.Reset()
	if run(inspect, "", "inspect", "--tokens", file); len(inspect.Prompt.GetHolders()) != 1 || inspect.Prompt.Holders[0].Runs[0].Blocks != 2 {
		t.Errorf("inspect prompt: %v", inspect)
	}
	// Tables for people, and errors that say what was wrong.
	if stdout, _, code := kvscout(t, ids, "score", "--server", s.url, "--tokens", "-"); code != 0 || !strings.Contains(stdout, "w0") || json.Valid([]byte(stdout)) {
		t.Errorf("table: exit %d: %s", code, stdout)
	}
	if _, stderr, code := kvscout(t, ids, "score", "--server", s.url, "--tokens", "-", "--model", "other"); code != 1 || !strings.Contains(stderr, "other") {
		t.Errorf("unknown model: exit %d: %s", code, stderr)
	}
}

// A server on a unix socket, stopped by SIGTERM in the middle of a call.
func TestServe_UnixSocketAndStop(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "kvs") // short: the path of a socket has little room
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(program, "serve", "--listen", "unix://"+socket)
	cmd.Env = clearedEnv()
	p := start(t, "kvscout serve", cmd)
	var stdout string
	eventually(t, "the socket answers", func() bool {
		var code int
		stdout, _, code = kvscout(t, "", "stats", "--server", "unix://"+socket, "--json")
		return code == 0
	})
	out, err := exec.Command("/usr/bin/curl", "--silent", "--fail", "--unix-socket", socket, "--header", "Content-Type: application/json",
		"--data", "{}", "http://kvscout/"+listMethod).CombinedOutput()
	if err != nil || !json.Valid(out) || !json.Valid([]byte(stdout)) {
		t.Errorf("curl: %v: %s; stats: %s", err, out, stdout)
	}
	p.signal(t, syscall.SIGTERM)
	eventually(t, "the server ends", func() bool { return !p.alive() })
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d after SIGTERM", code)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// SIGTERM with engines, streams and clients connected ends the server in time, with exit 0.
func TestServe_StopsWithEverythingConnected(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", replay: true})
	in := startEngine(t, engineConfig{id: "w1", dial: true})
	s := serveFleet(t, []*engine{e, in})
	e.hello(s)
	in.hello(s)
	conn, ctx := s.grpc(t)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/kvscout.v1.IndexService/StreamStats")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(new(kvscoutv1.StreamStatsRequest)), stream.CloseSend(), stream.RecvMsg(new(kvscoutv1.StreamStatsResponse))); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGTERM)
	eventually(t, "the server ends", func() bool { return !s.alive() })
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d after SIGTERM", code)
	}
}

// What cannot be served is refused at the start, with a reason.
func TestServe_BadStart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	tests := []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--listen", s.addr}, 1, "address already in use"},
		{[]string{"--source", "id=w0,engine=vllm2,model=m"}, 2, "vllm2"},
		{[]string{"--source", "id=w0,engine=vllm,model=m,colour=red"}, 2, "colour"},
		{[]string{"--no-such-flag"}, 2, "no-such-flag"},
	}
	for _, tt := range tests {
		_, stderr, code := kvscout(t, "", append([]string{"serve"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("serve %v: exit %d, want %d with %q: %s", tt.args, code, tt.code, tt.says, stderr)
		}
	}
}
