package ingest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/test/testpython"
)

// drain is an engine's /kv_cache_events, served by Python.
type drain struct {
	*testing.T
	in  io.Writer
	out *bufio.Reader
	url string
	id  int
}

func newDrain(t *testing.T) *drain {
	t.Helper()
	cmd := exec.Command(testpython.Path(t), "../../events/poll/testdata/server.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	d := &drain{T: t, in: in, out: bufio.NewReader(out)}
	d.url = "http://127.0.0.1:" + d.line() + "/kv_cache_events"
	return d
}

func (d *drain) line() string {
	d.Helper()
	text, err := d.out.ReadString('\n')
	if err != nil {
		d.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// idle waits until the server has answered every poll of those who have gone: a late one would drain the next event.
func (d *drain) idle() {
	d.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	answer, err := client.Get(d.url + "/none") // accepted behind them
	if err != nil {
		d.Fatal(err)
	}
	_ = answer.Body.Close()
	fmt.Fprintln(d.in, "idle")
	d.line()
}

// event queues an event of a window under the next number.
func (d *drain) event(window int, data string) {
	d.Helper()
	fmt.Fprintf(d.in, "push {\"event_id\": %d, \"window_size\": %d, \"data\": {%s}}\n", d.id, window, data)
	d.line()
	d.id++
}

// store is the data of a store of blocks of 4 tokens, whose hashes are 101, 102, ... and tokens 1, 2, ...
func store(first, blocks, cutTokens int) string {
	parent := "null"
	if first > 0 {
		parent = fmt.Sprint(100 + first)
	}
	var list []string
	for b := first; b < first+blocks; b++ {
		var tokens []string
		for i := range 4 {
			if b == first+blocks-1 && i >= 4-cutTokens {
				break
			}
			tokens = append(tokens, fmt.Sprintf(`{"type": "unique_token", "token_id": %d, "token_extra_id": 0}`, b*4+i+1))
		}
		list = append(list, fmt.Sprintf(`{"type": "stored_block", "block_hash": %d, "tokens": [%s], "cache_level": 0, "priority": 35, "mm_keys": []}`, 101+b, strings.Join(tokens, ",")))
	}
	return fmt.Sprintf(`"type": "stored", "parent_hash": %s, "blocks": [%s]`, parent, strings.Join(list, ","))
}

// match waits until the last event pushed was applied and returns what the source holds of tokens 1, 2, ...
func (r *rig) match(d *drain, tokens int) indexer.Match {
	r.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		q := indexer.Query{Model: "m"}
		for i := range tokens {
			q.Tokens = append(q.Tokens, uint32(i+1))
		}
		matches, err := r.index.Lookup(context.Background(), q)
		if err != nil {
			r.Fatal(err)
		}
		for _, m := range matches {
			if m.Source.Rank == 0 && m.Freshness.HasSequence && m.Freshness.LastSequence == uint64(d.id-1) {
				return m
			}
		}
		if time.Now().After(deadline) {
			r.Fatalf("event %d is not applied: %+v", d.id-1, matches)
		}
		time.Sleep(time.Millisecond) // a poll with a deadline
	}
}

func polled(t *testing.T) (*rig, *drain) {
	t.Helper()
	d := newDrain(t)
	r := newRig(t, Options{})
	r.register(Worker{ID: "w", Model: "m", Sources: []events.Source{{Worker: "w", Engine: events.EngineTRTLLM, BlockSize: 4, Events: d.url}}})
	return r, d
}

// Cases 123 and 134, rule 5: what an engine with two windows stores, moves and removes, polled over HTTP.
func TestPolled_Case123_Case134(t *testing.T) {
	r, d := polled(t)
	d.event(512, `"type": "created", "num_blocks_per_cache_level": [10, 10]`)
	d.event(4096, `"type": "created", "num_blocks_per_cache_level": [10, 10]`)
	d.event(512, store(0, 3, 0))
	d.event(4096, store(0, 3, 0))
	if m := r.match(d, 13); m.Held != 12 || m.Reusable != 12 || m.Freshness.State != events.StateLive {
		t.Errorf("both windows hold 3 blocks: %+v", m)
	}
	// A removal from the smaller window leaves the larger one's blocks; the engine needs both to reuse.
	d.event(512, `"type": "removed", "block_hashes": [103]`)
	if m := r.match(d, 13); m.Held != 12 || m.Reusable != 8 {
		t.Errorf("the small window lost block 3: held %d, reusable %d", m.Held, m.Reusable)
	}
	d.event(4096, `"type": "updated", "block_hash": 103, "cache_level": {"type": "event_diff", "old_value": 0, "new_value": 1}, "priority": null`)
	if m := r.match(d, 13); m.Held != 8 {
		t.Errorf("block 3 went to the host: held %d", m.Held)
	}
	d.event(4096, `"type": "removed", "block_hashes": [103]`)
	d.event(4096, `"type": "removed", "block_hashes": [102]`)
	if m := r.match(d, 13); m.Held != 4 {
		t.Errorf("blocks 2 and 3 are gone: held %d", m.Held)
	}
	rejected := r.fleet.workers["w"].sources[0].writer.Rejected()
	if rejected[events.ReasonUnknownRemoval] != 0 {
		t.Errorf("removals of blocks unknown: %d", rejected[events.ReasonUnknownRemoval])
	}
	for range 10 {
		d.event(4096, store(1, 1, 2))
		d.event(4096, `"type": "removed", "block_hashes": [102]`)
	}
	if m := r.match(d, 13); m.Held != 4 {
		t.Errorf("partial blocks are held: %d", m.Held)
	}
	rejected = r.fleet.workers["w"].sources[0].writer.Rejected()
	if rejected[events.ReasonPartialBlock] != 10 || rejected[events.ReasonUnknownRemoval] != 10 {
		t.Errorf("counted %d partial stores and %d removals of them, want 10 and 10", rejected[events.ReasonPartialBlock], rejected[events.ReasonUnknownRemoval])
	}
}

// Rule 11: events that another poller took leave a gap, which drops what was held; a new life makes up for it.
func TestRule11_PolledGapAndRestart(t *testing.T) {
	r, d := polled(t)
	d.event(4096, `"type": "created", "num_blocks_per_cache_level": [10, 10]`)
	d.event(4096, store(0, 2, 0))
	if m := r.match(d, 9); m.Held != 8 || m.Bound.Kind != indexer.Exact {
		t.Errorf("before: %+v", m)
	}
	d.id += 3
	d.event(4096, store(2, 1, 0))
	if m := r.match(d, 13); m.Held != 0 || m.Bound.Kind == indexer.Exact || m.Freshness.State != events.StateGap {
		t.Errorf("after a gap: held %d, %+v, %v", m.Held, m.Bound, m.Freshness.State)
	}
	d.id = 0
	d.event(4096, `"type": "created", "num_blocks_per_cache_level": [10, 10]`)
	d.event(4096, store(0, 1, 0))
	if m := r.match(d, 9); m.Held != 4 || m.Bound.Kind != indexer.Exact || m.Freshness.State != events.StateLive {
		t.Errorf("after a restart: held %d, %+v, %v", m.Held, m.Bound, m.Freshness.State)
	}
}

// One endpoint tells of all attention-DP ranks, each of which is answered for itself.
func TestPolled_Ranks(t *testing.T) {
	r, d := polled(t)
	push := func(id, rank int, data string) {
		fmt.Fprintf(d.in, "push {\"event_id\": %d, \"attention_dp_rank\": %d, \"window_size\": 4096, \"data\": {%s}}\n", id, rank, data)
		d.line()
		d.id++
	}
	created := `"type": "created", "num_blocks_per_cache_level": [10, 10]`
	push(0, 0, created)
	push(0, 1, created)
	push(1, 1, store(0, 2, 0))
	push(1, 0, store(0, 1, 0))
	r.match(d, 9)
	q := indexer.Query{Model: "m", Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	matches, err := r.index.Lookup(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, m := range matches {
		got[m.Source.ID()] = m.Held
	}
	if len(got) != 2 || got["w/0"] != 4 || got["w/1"] != 8 {
		t.Errorf("ranks hold %v", got)
	}
}
