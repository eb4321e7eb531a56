package main

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// collected are the spans that a collector got.
type collected struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex // guards spans
	spans []*tracev1.Span
}

func (c *collected) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		for _, s := range r.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
	return new(collector.ExportTraceServiceResponse), nil
}

// ServeHTTP is the same by OTLP's HTTP.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := new(collector.ExportTraceServiceRequest)
	if err := proto.Unmarshal(body, req); err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), req)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// all returns the spans so far.
func (c *collected) all() []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*tracev1.Span(nil), c.spans...)
}

// collectGRPC is a collector that speaks gRPC, which is not ours.
func collectGRPC(t *testing.T) (*collected, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got, srv := new(collected), grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, got)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }() // ended by Stop, waited for on done
	t.Cleanup(func() { srv.Stop(); <-done })
	return got, "http://" + l.Addr().String()
}

func collectHTTP(t *testing.T) (*collected, string) {
	t.Helper()
	got := new(collected)
	srv := httptest.NewServer(got)
	t.Cleanup(srv.Close)
	return got, srv.URL
}

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	secretSalt   = "salt-of-a-tenant"
)

// tracingRenderer is a renderer, not ours, that keeps the traceparent it is asked with.
func tracingRenderer(t *testing.T) (url string, asked chan string) {
	t.Helper()
	asked = make(chan string, 10)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/render") {
			return // health
		}
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- r.Header.Get("traceparent")
		_, _ = io.WriteString(w, `[{"token_ids":[31337,31338,31339]}]`)
	}))
	t.Cleanup(fake.Close)
	return fake.URL, asked
}

// serveTraced runs a server and returns a client, and what ends the server, which flushes.
func serveTraced(t *testing.T, args ...string) (kvscoutv1connect.ScoreServiceClient, *process) {
	t.Helper()
	p := startProcess(t, append([]string{"--source", "id=w0,engine=vllm,model=m", "--admin-listen", "127.0.0.1:0"}, args...)...)
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: transport}, "http://"+p.address), p
}

func scoreTraced(t *testing.T, c kvscoutv1connect.ScoreServiceClient, traceparent string, msg *kvscoutv1.ScoreRequest) {
	t.Helper()
	req := connect.NewRequest(msg)
	if traceparent != "" {
		req.Header().Set("Traceparent", traceparent)
	}
	if _, err := c.Score(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

func bodyOf() *kvscoutv1.ScoreRequest {
	return &kvscoutv1.ScoreRequest{CacheSalt: secretSalt, HttpRequest: &kvscoutv1.HttpRequest{
		Path: "/v1/completions", Body: []byte(`{"model":"m","prompt":"secret words"}`)}}
}

func (p *process) stopped(t *testing.T) {
	t.Helper()
	p.signal(t, os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
}

// A sampled call is a span of its caller's trace; its steps are children of it, and the renderer's call belongs to the
// render. What a caller sent is in none of them. The metrics have an exemplar of the trace.
func TestTraces(t *testing.T) {
	for name, collect := range map[string]func(*testing.T) (*collected, string){"grpc": collectGRPC, "http/protobuf": collectHTTP} {
		t.Run(name, func(t *testing.T) {
			got, endpoint := collect(t)
			url, asked := tracingRenderer(t)
			c, p := serveTraced(t, "--otlp-endpoint", endpoint, "--otlp-protocol", name, "--renderer", url, "--trace-ratio", "0")
			scoreTraced(t, c, "00-"+callersTrace+"-"+callersSpan+"-01", bodyOf())
			scoreTraced(t, c, "", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}) // sampled by nobody
			wantExemplar(t, p)
			p.stopped(t)

			spans := make(map[string]*tracev1.Span)
			for _, s := range got.all() {
				spans[s.GetName()] = s
				if hex.EncodeToString(s.GetTraceId()) != callersTrace {
					t.Errorf("%s belongs to trace %x", s.GetName(), s.GetTraceId())
				}
				text := protojson.Format(s)
				for _, secret := range []string{secretSalt, "31337", "31338", "secret words"} {
					if strings.Contains(text, secret) {
						t.Errorf("%q is in a span: %s", secret, text)
					}
				}
			}
			call := spans["kvscout.v1.ScoreService/Score"]
			if hex.EncodeToString(call.GetParentSpanId()) != callersSpan || call.GetKind() != tracev1.Span_SPAN_KIND_SERVER {
				t.Errorf("the call: %v", call)
			}
			for _, step := range []string{"render", "key", "lookup", "score"} {
				s := spans[step]
				if s == nil || hex.EncodeToString(s.GetParentSpanId()) != hex.EncodeToString(call.GetSpanId()) {
					t.Errorf("%s: %v", step, s)
				} else if s.GetStartTimeUnixNano() < call.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > call.GetEndTimeUnixNano() {
					t.Errorf("%s is not within its call", step)
				}
			}
			if len(spans) != 5 || len(got.all()) != 5 {
				t.Errorf("%d spans: %v", len(got.all()), spans)
			}
			if parent := <-asked; parent != "00-"+callersTrace+"-"+hex.EncodeToString(spans["render"].GetSpanId())+"-01" {
				t.Errorf("the renderer is asked within %q", parent)
			}
		})
	}
}

// wantExemplar looks for the trace in what a scraper of OpenMetrics gets.
func wantExemplar(t *testing.T, p *process) {
	t.Helper()
	address := operatorsAddress(t, p.log)
	eventually(t, "an exemplar", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `# {trace_id="`+callersTrace+`"}`)
	})
}

// By the variables of the specification; a trace that begins here is sampled by the ratio.
func TestTraces_Environment(t *testing.T) {
	got, endpoint := collectGRPC(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	c, p := serveTraced(t, "--trace-ratio", "1")
	scoreTraced(t, c, "", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}})
	scoreTraced(t, c, "00-"+callersTrace+"-"+callersSpan+"-00", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}) // its caller samples it not
	p.stopped(t)
	if spans := got.all(); len(spans) != 4 { // call, key, lookup, score
		t.Errorf("%d spans: %v", len(spans), spans)
	}
}

// A collector that is down costs no call, and a shutdown little; what is lost is told.
func TestTraces_CollectorDown(t *testing.T) {
	c, p := serveTraced(t, "--otlp-endpoint", "http://127.0.0.1:1", "--trace-ratio", "1")
	scoreTraced(t, c, "", &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}})
	p.stopped(t)
	if text := p.log.String(); !strings.Contains(text, "could not be exported") && !strings.Contains(text, "spans are lost") {
		t.Errorf("log:\n%s", text)
	}
}

func TestTraces_BadOptions(t *testing.T) {
	for flags, want := range map[string]string{
		"--otlp-endpoint=collector:4317":                       "the endpoint is not like",
		"--otlp-endpoint=http://user:hunter2@h:1":              "the endpoint is not like",
		"--otlp-endpoint=http://h:1 --otlp-protocol=http/json": "http/protobuf or grpc",
		"--trace-ratio=1.5":                                    "trace-ratio 1.5 is not 0 to 1",
		"--trace-ratio=NaN":                                    "is not 0 to 1",
	} {
		r := run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		if r.code != exitUsage || !strings.Contains(r.err, want) || strings.Contains(r.err, "hunter2") {
			t.Errorf("%s: %d %s", flags, r.code, r.err)
		}
	}
}
