package main

import (
	"strings"
	"testing"

	"github.com/kvscout/kvscout/test/pki"
)

// Every command that calls a server can do so with TLS, a token or a certificate, over each protocol.
func TestAccess_Commands(t *testing.T) {
	const scoring, operating = "score-token-0123456789", "operate-token-0123456789"
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	callers := writeFile(t, "callers", "score gateway token:"+scoring+"\noperate admin token:"+operating+"\noperate ops san:ops.example\n")
	server, log := startServe(t, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", ca.File, "--callers", callers)
	if !strings.HasPrefix(server, "https://") {
		t.Errorf("the address is %s", server)
	}
	score, operate := writeFile(t, "score", scoring+"\n"), writeFile(t, "operate", operating)
	opsCert, opsKey := ca.Sign(pki.Leaf{DNS: []string{"ops.example"}})
	as := func(more ...string) []string { return append([]string{"--server", server, "--ca", ca.File}, more...) }
	worker := []string{"--source", "id=w0,engine=vllm,model=m"}
	for _, protocol := range []string{"connect", "grpc", "grpcweb"} {
		admin := as("--token-file", operate, "--protocol", protocol)
		ok(t, append(append([]string{"workers", "add"}, worker...), admin...)...)
		wants(t, ok(t, append([]string{"stats", "--watch=1h", "--count", "1"}, as("--token-file", score, "--protocol", protocol)...)...), "access: ", "file of callers: read 1 times", "certificate: 12h0m0s left")
		ok(t, append([]string{"clear", "--worker", "w0"}, as("--cert", opsCert, "--key", opsKey, "--protocol", protocol)...)...)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no token":               {as(), "NO_CREDENTIAL"},
		"the other role":         {as("--token-file", score), "ROLE_MISSING"},
		"unknown authority":      {[]string{"--server", server, "--token-file", operate}, "certificate"},
		"no TLS":                 {[]string{"--server", strings.Replace(server, "https", "http", 1), "--token-file", operate}, "400 Bad Request"},
		"no token file":          {as("--token-file", "/nonexistent"), "token-file"},
		"an empty token file":    {as("--token-file", writeFile(t, "empty", "\n")), "no token"},
		"a key without its pair": {as("--key", opsKey), "cert and key"},
		"no authority":           {[]string{"--server", server, "--ca", callers}, "no certificate"},
	} {
		r := run(t, append([]string{"clear", "--worker", "w0"}, c.args...)...)
		if r.code == exitOK || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: exit %d, %s", name, r.code, r.err)
		}
		if strings.Contains(r.err+log.String(), scoring) || strings.Contains(r.err+log.String(), operating) {
			t.Errorf("%s: a token is shown", name)
		}
	}
}

// Engines without engines try a server out that has TLS and callers, too.
func TestAccess_Simulate(t *testing.T) {
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	const token = "operate-token-0123456789"
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key,
		"--callers", writeFile(t, "callers", "operate admin token:"+token+"\n"))
	v := okJSON(t, "simulate", "--engines", "2", "--rate", "0", "--requests", "20", "--register", server, "--score", server,
		"--ca", ca.File, "--token-file", writeFile(t, "token", token), "--json")
	if v["scored"] != 20.0 || v["wrong"] != 0.0 {
		t.Errorf("got %v", v)
	}
}

// Listening beyond the own machine without TLS or callers is told; on loopback nothing is.
func TestAccess_Warnings(t *testing.T) {
	callers := writeFile(t, "callers", "score gateway token:0123456789abcdef\n")
	const everything, clear = "may do everything", "in clear text"
	for _, c := range []struct {
		args      []string
		want, not string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, everything, ""},
		{[]string{"--listen", "0.0.0.0:0"}, clear, ""},
		{[]string{"--listen", "0.0.0.0:0", "--callers", callers}, clear, everything},
		{[]string{"--listen", "127.0.0.1:0"}, "", everything},
		{[]string{"--listen", "127.0.0.1:0"}, "", clear},
	} {
		_, log := startServe(t, append(c.args, "--admin-listen", "off")...)
		if text := log.String(); !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%v: want %q, not %q:\n%s", c.args, c.want, c.not, text)
		}
	}
}

func TestAccess_BadSettings(t *testing.T) {
	for want, args := range map[string][]string{
		"need each other":          {"--tls-cert", "c"},
		"tls-client-ca needs":      {"--tls-client-ca", "c"},
		"Unix socket":              {"--tls-cert", "c", "--tls-key", "k", "--listen", "unix:///tmp/x"},
		"negative or no number":    {"--max-rate-per-caller", "NaN"},
		"max-calls":                {"--max-calls", "-1"},
		"max-wait":                 {"--max-wait", "0s"},
		"cors-origin":              {"--cors-origin", "ops.example.com"},
		"line 1: the credential":   {"--callers", writeFile(t, "callers", "score gateway secret-0123456789")},
		"no such file":             {"--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k"},
		"cors-origin \"https://a/": {"--cors-origin", "https://a/b"},
	} {
		r := run(t, append([]string{"serve"}, args...)...)
		if r.code != exitUsage || !strings.Contains(r.err, want) || strings.Contains(r.err, "secret-") {
			t.Errorf("%v: exit %d, want %q:\n%s", args, r.code, want, r.err)
		}
	}
}
