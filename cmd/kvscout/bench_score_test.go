package main

import (
	"strings"
	"testing"

	"github.com/kvscout/kvscout/test/pki"
)

// The keys are those that scripts outside read.
func TestBenchScoreJSON(t *testing.T) {
	address, _ := startServe(t, "--listen", "127.0.0.1:0")
	for _, args := range [][]string{
		{"--protocol", "connect", "--tokens", "1024", "--concurrency", "2"},
		{"--protocol", "connect-json", "--client", "stock", "--rate", "200", "--batch", "2"},
		{"--protocol", "grpc", "--hashes", "--ingest", "20000", "--prompts", "2"},
	} {
		v := okJSON(t, append([]string{"bench", "score", "--server", address, "--json", "--tokens", "512", "--workers", "4",
			"--duration", "500ms", "--warmup", "10ms"}, args...)...)
		wantKeys(t, v, "requests_per_s", "p50_us", "p99_us", "errors")
		if v["errors"] != 0. || v["requests_per_s"].(float64) <= 0 || v["calls"].(float64) <= 0 {
			t.Errorf("%q: %v", args, v)
		}
		if ingest, ok := v["ingest_blocks_per_s"]; ok != (args[1] == "grpc") || ok && ingest.(float64) <= 0 {
			t.Errorf("%q: %v blocks were published", args, ingest)
		}
	}
	if left := ok(t, "workers", "--server", address); strings.Contains(left, "bench") {
		t.Errorf("workers are left:\n%s", left)
	}
}

// Without --server one is started, whose processor time is known.
func TestBenchScoreOwnServer(t *testing.T) {
	t.Setenv(runMain, "1")
	v := okJSON(t, "bench", "score", "--json", "--tokens", "512", "--workers", "4", "--duration", "500ms", "--warmup", "10ms")
	wantKeys(t, v, "server_cpu_us", "client_cpu_us")
	if v["errors"] != 0. || v["calls"].(float64) <= 0 {
		t.Errorf("%v", v)
	}
	out := ok(t, "bench", "score", "--hashes", "--tokens", "512", "--duration", "300ms")
	wants(t, out, "32 block hashes, 64 workers, 8 callers, connect, lean client", "REQUESTS/S", "SERVER CPU US")
}

// A server with TLS that knows its callers is measured by each client.
func TestBenchScoreSecured(t *testing.T) {
	const token = "operate-token-0123456789"
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	opsCert, opsKey := ca.Sign(pki.Leaf{DNS: []string{"ops.example"}})
	callers := writeFile(t, "callers", "operate admin token:"+token+"\noperate ops san:ops.example\n")
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", ca.File, "--callers", callers)
	byToken, byCert := []string{"--token-file", writeFile(t, "token", token)}, []string{"--cert", opsCert, "--key", opsKey}
	small := []string{"bench", "score", "--server", server, "--ca", ca.File, "--json", "--tokens", "512", "--workers", "4", "--duration", "300ms", "--warmup", "10ms"}
	for _, args := range [][]string{
		byToken, byCert, append(byToken, "--client", "stock"), append(byToken, "--protocol", "grpc"), append(byCert, "--protocol", "grpc", "--ingest", "20000"),
	} {
		if v := okJSON(t, append(small[:len(small):len(small)], args...)...); v["errors"] != 0. || v["calls"].(float64) <= 0 {
			t.Errorf("%q: %v", args, v)
		}
	}
	r := run(t, small...)
	if r.code == exitOK || !strings.Contains(r.err, "NO_CREDENTIAL") {
		t.Errorf("without a credential: exit %d, %s", r.code, r.err)
	}
	if r := run(t, append([]string{"bench", "score"}, byToken...)...); r.code != exitUsage {
		t.Errorf("a token for a server that is started: exit %d, %s", r.code, r.err)
	}
}

func TestBenchScoreMisuse(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`protocol "http"`, []string{"--protocol", "http"}},
		{`client "fat"`, []string{"--client", "fat"}},
		{"no lean caller for gRPC", []string{"--protocol", "grpc", "--client", "lean"}},
		{"0 callers", []string{"--concurrency", "0"}},
		{"15 tokens", []string{"--tokens", "15"}},
		{"duration 0s", []string{"--duration", "0s"}},
		{"rate -1", []string{"--rate", "-1"}},
		{"a batch of 257", []string{"--batch", "257"}},
		{"wants http://HOST:PORT", []string{"--server", "https://127.0.0.1"}},
		{"ingest 999", []string{"--ingest", "999"}},
		{"ca: ", []string{"--server", "https://127.0.0.1:1", "--ca", "/nonexistent"}},
		{"token-file: ", []string{"--token-file", "/nonexistent"}},
	} {
		r := run(t, append([]string{"bench", "score", "--server", "http://127.0.0.1:1"}, c.args...)...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("bench score %q exits with %d, prints %q", c.args, r.code, r.out)
		}
		wants(t, r.err, c.want)
	}
}
