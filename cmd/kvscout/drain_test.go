package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/render"
)

// slowRenderer is a render server, not ours, that answers the first body once leave is closed. entered is closed when it has come.
func slowRenderer(t *testing.T, leave <-chan struct{}) (url string, entered <-chan struct{}) {
	t.Helper()
	came := make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // it is asked for its health
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		once.Do(func() { close(came) })
		<-leave
		_, _ = io.WriteString(w, `[{"token_ids":[1,2,3]}]`)
	}))
	t.Cleanup(s.Close)
	return s.URL, came
}

// A server that is told to end while a call is under way says that it drains, takes no connection any more, answers the call, and ends
// well.
func TestServeDrains(t *testing.T) {
	leave := make(chan struct{})
	free := sync.OnceFunc(func() { close(leave) })
	url, entered := slowRenderer(t, leave)
	t.Cleanup(free) // before the renderer is closed, which waits
	p := startProcess(t, "--admin-listen", "127.0.0.1:0", "--renderer", url, "--shutdown-grace", "1m", "--renderer-timeout", "1m")
	ok(t, "workers", "add", "--server", "http://"+p.address, "--source", "id=w0,engine=vllm,model=m")
	operators := operatorsAddress(t, p.log)
	if code, body := page(t, operators, "/readyz"); code != http.StatusOK {
		t.Fatalf("before: %d %s", code, body)
	}
	type outcome struct {
		tokens uint32
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // ends with its call, which the end of the process ends at the latest
		c := kvscoutv1connect.NewScoreServiceClient(http.DefaultClient, "http://"+p.address)
		res, err := c.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{
			HttpRequest: &kvscoutv1.HttpRequest{Path: render.PathCompletions, Body: []byte(`{"model":"m","prompt":"x"}`)},
		}))
		if err != nil {
			done <- outcome{err: err}
			return
		}
		done <- outcome{tokens: res.Msg.GetPromptTokens()}
	}()
	select {
	case <-entered:
	case got := <-done:
		t.Fatalf("the call ended before it was rendered: %v", got.err)
	}
	p.signal(t, syscall.SIGTERM)
	eventually(t, "readiness says that it drains", func() bool {
		code, body := page(t, operators, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `"state":"draining"`)
	})
	eventually(t, "no connection is taken", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	free()
	if got := <-done; got.err != nil || got.tokens != 3 {
		t.Errorf("the call under way: %d tokens, %v; want 3", got.tokens, got.err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v\n%s", err, p.log)
	}
}
