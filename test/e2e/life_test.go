package e2e

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zeebo/xxh3"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// The answer before each request is the number of tokens that the engine then takes from its cache, through stores,
// hits and evictions, in every form of bytes, whoever dials, and in every form of asking.
func TestRule1_EngineAgrees(t *testing.T) {
	tests := []struct {
		form string
		dial bool
	}{
		{"vllm", false}, {"vllm", true}, {"vllm-array", false}, {"sglang", true}, {"sglang", false},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%s dial=%v", tt.form, tt.dial), func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, engineConfig{id: "w0", form: tt.form, dial: tt.dial, blocks: 48})
			s := serveFleet(t, []*engine{e})
			e.hello(s)
			if tt.form == "sglang" { // number 0, published at its start, had nobody to go to
				s.reached(t, "w0", 0, e.do(obj{"op": "clear"}).Seq)
			}
			traffic := rand.New(rand.NewPCG(uint64(i), 2025))
			hits, evictions := 0, uint64(0)
			for n := range 120 {
				tokens := prompt(traffic)
				got := s.ask(t, tokens, n%3)
				r := e.serve(tokens)
				if got.ReusableTokens != uint32(r.Cached) || got.Freshness.LastSequence != nil && got.Bound.Kind != exact {
					t.Fatalf("request %d of %d tokens: predicted %d, %v; the engine took %d", n, len(tokens), got.ReusableTokens, got.Bound, r.Cached)
				}
				hits += r.Cached
				if !r.Silent {
					evictions = s.reached(t, "w0", 0, r.Seq).RemovedEvents
				}
			}
			if hits == 0 || evictions == 0 {
				t.Errorf("%d tokens hit, %d evictions: the traffic proves nothing", hits, evictions)
			}
		})
	}
}

// prompt makes a prompt that shares a beginning with others.
func prompt(r *rand.Rand) []uint32 {
	family := uint32(r.IntN(6) + 1)
	var tokens []uint32
	for i := range uint32(r.IntN(60) + 1) {
		tokens = append(tokens, family*1000+i)
	}
	for range r.IntN(3) * r.IntN(6) { // some end in a way of their own
		tokens = append(tokens, 100_000+r.Uint32N(1<<20))
	}
	return tokens
}

// ask asks about worker w0 with tokens packed (form 0), as numbers (1) or as hashes (2).
func (s *server) ask(t testing.TB, tokens []uint32, form int) *kvscoutv1.WorkerScore {
	t.Helper()
	in := obj{"model": "m", "candidates": []string{"w0"}}
	switch {
	case form == 0:
		in["tokens"] = obj{"packed": packed(tokens)}
	case form == 1 || len(tokens) < blockSize:
		in["tokens"] = obj{"ids": tokens}
	default:
		in["blockHashes"] = blockHashes(tokens)
	}
	out := new(kvscoutv1.ScoreResponse)
	s.call(t, scoreMethod, in, out)
	if len(out.Workers) != 1 || !out.Workers[0].Known || out.PromptTokens != uint32(len(tokens)) {
		t.Fatalf("one worker wanted, %d tokens: %v", len(tokens), out)
	}
	return out.Workers[0]
}

// blockHashes keys tokens by the published recipe: XXH3-64, seed 1337, of each full block's tokens as little-endian u32.
func blockHashes(tokens []uint32) obj {
	var keys []byte
	for i := 0; i+blockSize <= len(tokens); i += blockSize {
		var block []byte
		for _, v := range tokens[i : i+blockSize] {
			block = binary.LittleEndian.AppendUint32(block, v)
		}
		keys = binary.LittleEndian.AppendUint64(keys, xxh3.HashSeed(block, 1337))
	}
	return obj{"blockSize": blockSize, "packed": base64.StdEncoding.EncodeToString(keys), "promptTokens": len(tokens)}
}

// A newcomer's session with curl alone: register, score in three forms, see an eviction, deregister.
func TestCurl_Session(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "10.0.0.1:8000", replay: true})
	s := serve(t)

	registered := new(kvscoutv1.RegisterWorkerResponse)
	s.curl(t, registerMethod, e.worker(), registered)
	if registered.Replaced || registered.Worker.GetSpec().GetWorkerId() != e.id {
		t.Errorf("registered: %v", registered)
	}
	// The replay says that nothing was ever published: an empty cache, as a fact.
	s.inState(t, e.id, 0, stateLive)
	same(t, "fresh engine", s.score(t, e.id, span(1, 9)), answer{0, 0, exact, ""})

	e.hello(s)
	r := e.do(publish(stored(101, nil, span(1, 8))))
	s.reached(t, e.id, 0, r.Seq)
	for name, in := range map[string]obj{
		"packed": {"tokens": obj{"packed": packed(span(1, 9))}},
		"ids":    {"tokens": obj{"ids": span(1, 9)}},
		"hashes": {"blockHashes": blockHashes(span(1, 9))},
	} {
		out := new(kvscoutv1.ScoreResponse)
		s.curl(t, scoreMethod, in, out)
		if len(out.Workers) != 1 || out.PromptTokens != 9 {
			t.Fatalf("%s: %v", name, out)
		}
		same(t, name, out.Workers[0], answer{8, 8, exact, ""})
		if got, want := out.Workers[0].Score, 8.0/9; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: score %v, want %v", name, got, want)
		}
	}
	r = e.do(publish(obj{"type": "removed", "block_hashes": []int{102}}))
	s.reached(t, e.id, 0, r.Seq)
	same(t, "evicted", s.score(t, e.id, span(1, 9)), answer{4, 4, exact, ""})

	gone := new(kvscoutv1.DeregisterWorkerResponse)
	s.curl(t, deregisterMethod, obj{"workerId": e.id}, gone)
	if !gone.Known {
		t.Error("the worker was not known")
	}
	s.fails(t, scoreMethod, obj{"model": "m", "tokens": obj{"ids": span(1, 9)}}, failure{404, "not_found", "UNKNOWN_MODEL"})
}

// Case45 and rule 16: callers that score all the time while batches apply see nothing but states on the way from before a
// batch to after it.
func TestCase45_ScoresWhileBatchesApply(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", replay: true})
	s := serveFleet(t, []*engine{e})
	s.inState(t, "w0", 0, stateLive)
	e.hello(s)
	tokens := span(1, 4001)
	var published atomic.Uint32 // tokens that are held at most
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		// Ends with done; waited for below.
		wg.Go(func() {
			for last := uint32(0); ; {
				select {
				case <-done:
					return
				default:
				}
				w := s.score(t, "w0", tokens)
				if most := published.Load(); w.HeldTokens < last || w.HeldTokens > most || w.HeldTokens%blockSize != 0 || w.Bound.Kind != exact {
					t.Errorf("%d tokens held, %v, after %d, at most %d", w.HeldTokens, w.Bound, last, most)
					return
				}
				last = w.HeldTokens
			}
		})
	}
	var r result
	for n := uint32(8); n <= 4000; n += 8 { // two blocks a batch
		published.Store(n)
		r = e.serve(tokens[:n])
	}
	s.reached(t, "w0", 0, r.Seq)
	close(done)
	wg.Wait()
	same(t, "at the end", s.score(t, "w0", tokens), answer{4000, 4000, exact, ""})
}

// Rule 5: the tiers of a block that was offloaded, evicted from the device, and loaded back.
func TestRule5_Tiers(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0"})
	s := serveFleet(t, []*engine{e})
	e.hello(s)
	onHost := stored(101, nil, span(1, 8))
	onHost["medium"] = "CPU"
	r := e.do(publish(stored(101, nil, span(1, 8)), onHost, obj{"type": "removed", "block_hashes": []int{102}}))
	st := s.reached(t, "w0", 0, r.Seq)
	w := s.score(t, "w0", span(1, 12))
	same(t, "second block on the host", w, answer{4, 4, exact, ""})
	want := map[kvscoutv1.Tier]uint32{kvscoutv1.Tier_TIER_DEVICE: 4, kvscoutv1.Tier_TIER_HOST: 4}
	for _, tier := range w.Tiers {
		if want[tier.Tier] != tier.Tokens {
			t.Errorf("tiers %v, want %v", w.Tiers, want)
		}
	}
	if len(w.Tiers) != 2 || w.Score < 0.583 || w.Score > 0.584 { // (4 x 1 + 4 x 0.75) / 12
		t.Errorf("score %v of %v", w.Score, w.Tiers)
	}
	if len(st.Tiers) != 2 || st.Tiers[0].Blocks != 1 || st.Tiers[1].Blocks != 2 {
		t.Errorf("blocks by tier: %v, want 1 and 2", st.Tiers)
	}
}

// Case118 and case 119: a salted prompt is seen only with its salt, and the salt shows nowhere.
func TestCase118_Salts(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"vllm", "sglang"} {
		t.Run(form, func(t *testing.T) {
			e := startEngine(t, engineConfig{id: "w0", form: form, replay: true})
			s := serveFleet(t, []*engine{e}, "--log-level", "debug", "--log-format", "json")
			e.hello(s)
			const salt = "tenant-a-secret"
			r := e.do(obj{"op": "serve", "tokens": span(1, 9), "salt": salt})
			s.reached(t, "w0", 0, r.Seq)
			for asked, want := range map[string]uint32{"": 0, salt: 8, "tenant-b": 0} {
				w := s.scoreRank(t, "w0", 0, span(1, 9), obj{"cacheSalt": asked})
				same(t, fmt.Sprintf("salt %q", asked), w, answer{want, want, exact, ""})
			}
			e.do(obj{"op": "value", "value": []any{1.5, []any{[]any{"BlockStored", "x", salt, []any{salt}, salt}}, 0}})
			s.fails(t, scoreMethod, obj{"cacheSalt": salt, "model": "other", "tokens": obj{"ids": span(1, 9)}}, failure{404, "not_found", "UNKNOWN_MODEL"})
			if log := s.stderr.String(); strings.Contains(log, salt) {
				t.Errorf("the salt is in the log:\n%s", log)
			}
		})
	}
}
