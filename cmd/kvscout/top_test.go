package main

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
	"github.com/kvscout/kvscout/test/testport"
)

// busy lets a fleet of simulated engines serve until the test ends.
func busy(t *testing.T, engines []*simulate.Engine) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // ended by stop in the cleanup, which waits for done
		defer close(done)
		traffic := simulate.NewTraffic(1, simulate.DefaultTraffic())
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = engines[i%len(engines)].Serve(traffic.Next()) // one may have been closed
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// What an operator lives through: all is well, an engine dies, a stream loses batches, the server goes away and comes back.
func TestTop(t *testing.T) {
	var args []string
	var engines []*simulate.Engine
	for _, id := range []string{"sim-0", "sim-1", "sim-2"} {
		e, err := simulate.New(simulate.Config{Worker: id, Model: "m", Replay: "tcp://127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() }) // one is closed earlier
		engines, args = append(engines, e), append(args, "--source", spec(e))
	}
	busy(t, engines)
	args = append(args, "--source", "id=pushed,engine=vllm,model=other", "--stale-after", "1s",
		"--listen", "127.0.0.1:"+strconv.Itoa(testport.Free(t, 1)), "--admin-listen", "off")
	server := startProcess(t, args...)
	url := "http://" + server.address
	p := startTerminal(t, 100, 30, nil, "top", "--server", url, "--interval", "100ms")
	p.sees("kvscout top  "+url, "[1 Overview]", "3 live, 1 unknown", "pushed/0")
	if !p.screen.IsAltScreen() {
		t.Error("it does not use a screen of its own")
	}
	topSources(t, p, url, engines[1])
	topScores(t, p, url)

	server.signal(t, syscall.SIGKILL)
	_ = server.cmd.Wait() // it was killed
	p.sees("LOST", "again in")
	if !strings.Contains(p.text(), "[3 Calls]") {
		t.Errorf("the last numbers are gone:\n%s", p.text())
	}
	startProcess(t, args...)
	p.until(func(text string) bool { return !strings.Contains(text, "LOST") && strings.Contains(text, "up ") }, "connected again")
	p.types("q")
	p.ended()
}

// topSources goes through the list of sources while one dies and another loses batches.
func topSources(t *testing.T, p *terminal, url string, victim *simulate.Engine) {
	p.types("2")
	p.sees("[2 Sources]", "row 1 of 4", "sim-0", "sim-1", "sim-2", "pushed")
	p.until(regexp.MustCompile(`sim-0 +0 live +\S+ +\S+ +[1-9]`).MatchString, "blocks of sim-0")
	if err := victim.Close(); err != nil {
		t.Fatal(err)
	}
	p.until(regexp.MustCompile(`sim-1 +0 stale`).MatchString, "a dead engine goes stale")
	// A batch without events, another one, and one after a hole.
	empty := []byte{0x92, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0x90}
	o := clientOptions{server: url, protocol: "connect", timeout: time.Minute}
	if _, err := call(t.Context(), &o, &kvscoutv1.PublishRequest{WorkerId: "pushed", Batches: []*kvscoutv1.RawBatch{
		{Sequence: 0, Payload: empty}, {Sequence: 1, Payload: empty}, {Sequence: 9, Payload: empty},
	}}, (*client.Client).Publish); err != nil {
		t.Fatal(err)
	}
	p.until(regexp.MustCompile(`pushed +0 (gap|live) .*\n`).MatchString, "the pushed batches")
	p.types("/other\r")
	p.sees("filter: other", "row 1 of 1, filtered from 4")
	p.types("\r") // its detail
	p.sees("pushed rank 0", "1 gap", "7 lost", "history missing", "Events at", "Labels")
	p.types("\x1b") // back
	p.sees("filter: other", "row 1 of 1")
	p.types("\x1b") // without the filter
	p.sees("row 1 of 4")
	p.resize(80, 24)
	p.until(func(text string) bool {
		return strings.Contains(text, strings.Repeat("─", 80)) && strings.Contains(text, "row 1 of 4")
	}, "80x24")
	p.resize(120, 40)
	p.until(func(text string) bool {
		return strings.Contains(text, strings.Repeat("─", 120)) && strings.Contains(text, "row 1 of 4")
	}, "120x40")
	p.types("\x1b[C") // right: by the next column
	p.sees("▼AGE")
	p.types("?")
	p.sees("Keys", "shift+tab")
	p.types("?p")
	p.sees("PAUSED")
	p.types("p")
}

// topScores sees calls, their latency and their errors.
func topScores(t *testing.T, p *terminal, url string) {
	o := clientOptions{server: url, protocol: "connect", timeout: time.Minute}
	c, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.types("3")
	p.sees("[3 Calls]", "no answer")
	prompt := &kvscoutv1.Tokens{Ids: []int64{1, 2, 3, 4}}
	for range 50 {
		req := &kvscoutv1.ScoreRequest{Model: "m", Tokens: prompt}
		if _, err := c.Score(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Score(t.Context(), &kvscoutv1.ScoreRequest{Model: "x", Tokens: prompt}); err == nil {
		t.Fatal("scored a model that is not known")
	}
	p.sees("UNKNOWN_MODEL 1")
	p.until(regexp.MustCompile(`all( +[\d.]+[um]s){5} +50\b`).MatchString, "50 calls with quantiles")
}

// A signal ends it as the key does, and the terminal is as before; so it is when the key comes before any answer.
func TestTop_Ends(t *testing.T) {
	nobody := "http://127.0.0.1:" + strconv.Itoa(testport.Free(t, 1))
	for _, end := range []func(*terminal){
		func(p *terminal) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
		func(p *terminal) { p.types("\x03") },
		func(p *terminal) { p.types("/\x03") },
	} {
		p := startTerminal(t, 80, 24, nil, "top", "--server", nobody)
		p.sees("NOT CONNECTED", "connection refused")
		end(p)
		p.ended()
	}
}

// Colours are for terminals that have them, and not for who wants none; the words are the same.
func TestTop_Colours(t *testing.T) {
	url, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", "id=w0,engine=vllm,model=m,events=tcp://127.0.0.1:1")
	for _, tt := range []struct {
		env     string
		colours bool
	}{{"TERM=xterm-256color", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		p := startTerminal(t, 80, 24, []string{tt.env}, "top", "--server", url)
		p.sees("Not live or flagged", "w0/0", "connecting")
		if got := coloured(p); got != tt.colours {
			t.Errorf("%s: colours %v, want %v", tt.env, got, tt.colours)
		}
		p.types("q")
		p.ended()
	}
}

func coloured(p *terminal) bool {
	for y := range p.screen.Height() {
		for x := range 80 {
			if c := p.screen.CellAt(x, y); c != nil && (c.Style.Fg != nil || c.Style.Bg != nil) {
				return true
			}
		}
	}
	return false
}

// Where there is no terminal it says what to use, or prints everything once.
func TestTop_NoTerminal(t *testing.T) {
	r := run(t, "top")
	if r.code != exitUsage || r.out != "" {
		t.Errorf("exit code %d, output %q", r.code, r.out)
	}
	wants(t, r.err, "top needs a terminal", "kvscout stats --watch", "kvscout top --once")
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	serveTokens(t, e, simulate.Request{Tokens: tokens(100, 64)})
	url, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", spec(e))
	listed(t, url, "live")
	text := ok(t, "top", "--once", "--server", url, "--interval", "100ms")
	wants(t, text, "Sources     1: 1 live", "0/s stored", "device 4", "ANSWERS")
	if strings.Contains(text, "\x1b") {
		t.Errorf("escapes in %q", text)
	}
	if r := run(t, "top", "--once", "--server", "http://127.0.0.1:1"); r.code != exitFailed {
		t.Errorf("without a server it exits with %d: %s", r.code, r.err)
	}
	if r := run(t, "top", "--interval", "1ms"); r.code != exitUsage {
		t.Errorf("an interval of 1ms: exit code %d", r.code)
	}
}

// Ids and labels are whatever a caller registered: they reach no terminal as they are.
func TestTablesShowNoControlCharacters(t *testing.T) {
	url, _ := startServe(t, "--listen", "127.0.0.1:0")
	const id = "a\x1b]0;owned\a\tb\u202e"
	o := clientOptions{server: url, protocol: "connect", timeout: time.Minute}
	spec := &kvscoutv1.WorkerSpec{WorkerId: id, Model: "m\x1b[2J", Engine: "vllm", Labels: map[string]string{"x\x07": "\x1b[31m"}}
	if _, err := call(t.Context(), &o, &kvscoutv1.RegisterWorkerRequest{Worker: spec}, (*client.Client).RegisterWorker); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"workers"}, {"stats"}, {"inspect", "--worker", id}, {"top", "--once", "--interval", "100ms"}} {
		out := ok(t, append(args, "--server", url)...)
		if i := strings.IndexAny(out, "\x1b\a\u202e"); i >= 0 {
			t.Errorf("%q shows %q", args, out[max(0, i-10):min(len(out), i+20)])
		}
		if !strings.Contains(out, "a\ufffd]0;owned\ufffd\ufffdb\ufffd") {
			t.Errorf("%q does not show the worker: %q", args, out)
		}
	}
}
