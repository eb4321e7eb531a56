package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// Every protocol over TCP, TLS and a unix socket: a call, an error with its reason, a stream of the server, a stream of both.
func TestClient_ProtocolsAndTransports(t *testing.T) {
	h := handler(t)
	plain, _ := serve(t, h)
	secure := serveTLS(t, h)
	tls := secure.Client().Transport.(*http.Transport).TLSClientConfig
	for _, protocol := range []client.Protocol{"", client.Connect, client.ConnectJSON, client.GRPC, client.GRPCWeb} {
		for name, url := range map[string]string{"tcp": plain, "tls": secure.URL, "unix": serveUnix(t, h)} {
			t.Run(string(protocol)+" "+name, func(t *testing.T) {
				c := dial(t, client.Options{Protocol: protocol, TLS: tls}, url)
				scored(t, t.Context(), c)
				_, err := c.Score(t.Context(), &kvscoutv1.ScoreRequest{Model: "other", Tokens: client.Tokens([]int32{1})})
				if connect.CodeOf(err) != connect.CodeNotFound || client.Reason(err) != "UNKNOWN_MODEL" {
					t.Errorf("got %v, reason %q", err, client.Reason(err))
				}
				streams(t, c)
			})
		}
	}
}

// streams opens each stream and takes one answer.
func streams(t *testing.T, c *client.Client) {
	t.Helper()
	stats, err := c.StreamStats(t.Context(), new(kvscoutv1.StreamStatsRequest))
	if err != nil || !stats.Receive() || stats.Msg().GetStats().GetHolderBlocks() != 4 {
		t.Errorf("stats: %v, %v", err, stats)
	}
	_ = stats.Close()
	dump, err := c.Dump(t.Context(), new(kvscoutv1.DumpRequest))
	if err != nil || !dump.Receive() || len(dump.Msg().GetBlocks()) != 4 {
		t.Errorf("dump: %v", err)
	}
	_ = dump.Close()
	both := c.ScoreStream(t.Context())
	for _, id := range []string{"a", "b"} {
		req := scoreRequest()
		req.Id = id
		if err := both.Send(&kvscoutv1.ScoreStreamRequest{Request: req}); err != nil {
			t.Error(err)
		}
		if res, err := both.Receive(); err != nil || res.GetResult().GetId() != id || res.GetResult().GetResponse().GetPromptTokens() != 64 {
			t.Errorf("stream of scores: %v, %v", res, err)
		}
	}
	_ = both.CloseRequest()
	_ = both.CloseResponse()
}

// The client has every method that the services have.
func TestClient_HasEveryMethod(t *testing.T) {
	n := 0
	for m := range methods() {
		n++
		if _, ok := reflect.TypeFor[*client.Client]().MethodByName(string(m.Name())); !ok {
			t.Errorf("there is no %s", m.FullName())
		}
	}
	if n < 16 {
		t.Errorf("%d methods: the walk misses some", n)
	}
}

func TestNew_Refuses(t *testing.T) {
	for name, tt := range map[string]struct {
		urls []string
		opts client.Options
	}{
		"no address":      {nil, client.Options{}},
		"no scheme":       {[]string{"127.0.0.1:9470"}, client.Options{}},
		"another scheme":  {[]string{"ftp://h:1"}, client.Options{}},
		"relative socket": {[]string{"unix://s"}, client.Options{}},
		"credentials":     {[]string{"http://u:s3cret@h:1"}, client.Options{}},
		"query":           {[]string{"http://h:1?token=s3cret"}, client.Options{}},
		"protocol":        {[]string{"http://h:1"}, client.Options{Protocol: "soap"}},
	} {
		_, err := client.New(tt.urls, tt.opts)
		if !errors.Is(err, client.ErrOptions) || errors.Is(err, client.ErrPlaintextToken) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without TLS a token goes over loopback and unix sockets only, unless that is asked for.
func TestNew_TokenNeedsTLS(t *testing.T) {
	token := func(context.Context) (string, error) { return "s3cret", nil }
	for _, url := range []string{
		"http://10.0.0.1:1", "http://h:1", "http://0.0.0.0:1", "http://localhost.h:1", "http://127.0.0.1.h:1", "http://[2001:db8::1]:1",
	} {
		for _, urls := range [][]string{{url}, {"https://h:1", url}} {
			_, err := client.New(urls, client.Options{Token: token})
			if !errors.Is(err, client.ErrPlaintextToken) || !errors.Is(err, client.ErrOptions) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v: %v", urls, err)
			}
		}
	}
	for _, url := range []string{"http://127.0.0.1:1", "http://127.8.0.1:1", "http://[::1]:1", "http://localhost:1", "https://h:1", "unix:///s"} {
		c, err := client.New([]string{url}, client.Options{Token: token})
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		c.Close()
	}
	c, err := client.New([]string{"http://10.0.0.1:1"}, client.Options{Token: token, PlaintextToken: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A bearer token is read from its file again when it changes, goes with calls and streams, and is in no error.
func TestToken(t *testing.T) {
	var seen atomic.Value
	h := handler(t)
	url, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"))
		h.ServeHTTP(w, r)
	}))
	file := filepath.Join(t.TempDir(), "token")
	source := client.TokenFile(file)
	c := dial(t, client.Options{Token: source}, url)
	_, err := c.Score(t.Context(), scoreRequest())
	if connect.CodeOf(err) != connect.CodeUnauthenticated || !errors.Is(err, client.ErrToken) || seen.Load() != nil {
		t.Errorf("without a file: %v, sent %v", err, seen.Load())
	}
	write(t, file, "first-s3cret\n")
	scored(t, t.Context(), c)
	if seen.Load() != "Bearer first-s3cret" {
		t.Errorf("sent %v", seen.Load())
	}
	write(t, file, "second-s3cret")
	until(t, func() bool {
		scored(t, t.Context(), c)
		return seen.Load() == "Bearer second-s3cret"
	})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	scored(t, t.Context(), c) // with the last one
	streams(t, c)
	if seen.Load() != "Bearer second-s3cret" {
		t.Errorf("a stream sent %v", seen.Load())
	}
	_, err = c.Score(t.Context(), new(kvscoutv1.ScoreRequest))
	if client.Reason(err) != "NO_PROMPT" || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestTokenFile_Refuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": " \n", "lines": "a\nb", "large": strings.Repeat("x", 65<<10)} {
		file := filepath.Join(dir, name)
		write(t, file, text)
		if token, err := client.TokenFile(file)(t.Context()); err == nil {
			t.Errorf("%s: got a token of %d bytes", name, len(token))
		}
	}
	if _, err := client.TokenFile(dir)(t.Context()); err == nil {
		t.Error("a directory is no token")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// until polls: nothing tells when a file is read again.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain")
		}
	}
}

// An answer over ReadMaxBytes is refused as it is read.
func TestReadMaxBytes(t *testing.T) {
	url, _ := serve(t, handler(t))
	_, err := dial(t, client.Options{ReadMaxBytes: 16}, url).Score(t.Context(), scoreRequest())
	if connect.CodeOf(err) != connect.CodeResourceExhausted || client.Reason(err) != "" {
		t.Errorf("got %v", err)
	}
}

// A redirect is an error: prompts and tokens go where the caller says.
func TestRedirects_AreNotFollowed(t *testing.T) {
	other := &counted{next: handler(t)}
	elsewhere, _ := serve(t, other)
	url, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	if res, err := dial(t, client.Options{}, url).Score(t.Context(), scoreRequest()); err == nil || other.calls.Load() != 0 {
		t.Errorf("got %v; %d calls elsewhere", res, other.calls.Load())
	}
}

// Packed ids are those of the published form: Python's struct.pack('<4i', 1, 2, 3, 151645).
func TestTokens(t *testing.T) {
	want := "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x5d\x50\x02\x00"
	if got := string(client.Tokens([]int32{1, 2, 3, 151645}).GetPacked()); got != want {
		t.Errorf("got %x", got)
	}
	if got := string(client.Tokens([]uint32{1, 2, 3, 151645}).GetPacked()); got != want {
		t.Errorf("got %x", got)
	}
	if got := client.Tokens([]int32(nil)).GetPacked(); len(got) != 0 {
		t.Errorf("got %x", got)
	}
}

// What is no error of kvscout has no reason.
func TestReason_OfOthers(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, err := dial(t, client.Options{}, web.URL).GetStats(t.Context(), new(kvscoutv1.GetStatsRequest))
	for _, err := range []error{nil, errors.New("x"), err} {
		if _, ok := client.RetryAfter(err); client.Reason(err) != "" || ok {
			t.Errorf("%v has a reason", err)
		}
	}
}
