package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/test/testport"
)

// Rule 13 from outside: recorded messages of real engines go through real ZMQ into a server, and each recorded request is
// scored at its time by Connect JSON. What is called exact is what the engine took from its cache.
func TestRule13_RecordingsFromOutside(t *testing.T) {
	tests := []struct {
		name             string
		requests, bounds int
		restarts         bool
	}{
		// Before its first clear, the history of the first is missing.
		{"vllm-0.32-base", 221, 2, false},
		{"sglang-0.5.23-hicache_rust_write_back_p16", 150, 0, false},
		{"vllm-0.32-dp2-restart", 105, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &replayer{t: t, s: serve(t), sources: make(map[string]*replayed)}
			p.play(filepath.Join(root, "test", "testdata", "recordings", tt.name+".kvrec"))
			if p.requests != tt.requests || p.bounds != tt.bounds || p.wrong != 0 {
				t.Errorf("%d requests, %d bounds, %d wrong; want %d, %d, 0", p.requests, p.bounds, p.wrong, tt.requests, tt.bounds)
			}
			if (p.restarts > 0) != tt.restarts {
				t.Errorf("%d restarts", p.restarts)
			}
		})
	}
}

type replayer struct {
	t       *testing.T
	s       *server
	sources map[string]*replayed

	requests, bounds, wrong, restarts int
}

// replayed is one source: a publisher that sends what was recorded.
type replayed struct {
	*engine
	info *events.Source
	last uint64 // number of the last message of this life
	any  bool   // whether there was one
	life uint64
}

func (p *replayer) play(path string) {
	p.open(path)
	p.each(path, func(rec *recording.Record) {
		switch rec.Kind {
		case recording.KindMessage:
			p.message(rec)
		case recording.KindRequest:
			p.request(rec)
		}
	})
}

func (p *replayer) each(path string, do func(*recording.Record)) {
	p.t.Helper()
	r, err := recording.Open(path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	for !p.t.Failed() {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.t.Fatal(err)
		}
		do(rec)
	}
}

// open starts a publisher for each recorded source and registers their workers.
func (p *replayer) open(path string) {
	p.t.Helper()
	var infos []*events.Source
	ports, ranks := make(map[string]int), make(map[string]int) // by worker
	whole := make(map[string]bool)                             // sources that were recorded from their first batch on
	p.each(path, func(rec *recording.Record) {
		if _, ok := whole[rec.Source]; !ok && rec.Kind == recording.KindMessage {
			whole[rec.Source] = binary.BigEndian.Uint64(rec.Frames[1]) == 0
		}
		if rec.Kind == recording.KindSource && !slices.ContainsFunc(infos, func(i *events.Source) bool { return i.ID() == rec.Source }) {
			infos = append(infos, rec.Info)
			ranks[rec.Info.Worker] = max(ranks[rec.Info.Worker], rec.Info.Rank+1)
		}
	})
	for _, i := range infos {
		if ports[i.Worker] == 0 {
			ports[i.Worker] = testport.Free(p.t, replayOffset+ranks[i.Worker])
		}
		// A publisher that was there before the recording must not say that nothing came before.
		e := startEngine(p.t, engineConfig{id: i.Worker, rank: i.Rank, port: ports[i.Worker] + i.Rank, replay: whole[i.ID()]})
		if i.Model == "" {
			i.Model = e.model
		}
		p.sources[i.ID()] = &replayed{engine: e, info: i}
	}
	for _, src := range p.sources {
		if src.rank == 0 {
			spec := src.worker()
			w := spec["worker"].(obj)
			w["engine"], w["model"] = string(src.info.Engine), src.info.Model
			w["blockSize"], w["ranks"] = src.info.BlockSize, ranks[src.id]
			p.s.call(p.t, registerMethod, spec, new(kvscoutv1.RegisterWorkerResponse))
		}
	}
	for _, src := range p.sources {
		if src.replay {
			p.s.inState(p.t, src.id, uint32(src.rank), stateLive)
		}
		src.hello(p.s)
	}
}

func (p *replayer) message(rec *recording.Record) {
	p.t.Helper()
	src := p.sources[rec.Source]
	seq := binary.BigEndian.Uint64(rec.Frames[1])
	if src.any && seq <= src.last {
		p.restart(src)
	}
	command := sent(rec.Frames...)
	command["op"] = "recorded"
	src.do(command)
	src.last, src.any = seq, true
}

// restart ends a life of the source as its engine ended it.
func (p *replayer) restart(src *replayed) {
	p.t.Helper()
	p.restarts++
	src.life++
	src.any = false
	src.restart()
	p.s.await(p.t, "restart seen", src.id, uint32(src.rank), func(st *kvscoutv1.SourceStats) bool {
		return st.Resets == src.life && st.Freshness.State == stateLive
	})
	src.hello(p.s)
}

func (p *replayer) request(rec *recording.Record) {
	p.t.Helper()
	src, q := p.sources[rec.Source], rec.Request
	if after, ok := q.After[rec.Source]; src.any && (!ok || after < src.last) {
		p.restart(src) // the client had lost the engine, though nothing of the next life has arrived
	}
	if src.any {
		p.s.await(p.t, "last batch", src.id, uint32(src.rank), lastIs(src.last))
	}
	in := obj{
		"model": src.info.Model, "adapter": q.Adapter, "cacheSalt": q.CacheSalt, "extraKey": q.ExtraKey,
		"candidates": []string{src.id}, "tokens": obj{"packed": packed(q.Tokens)},
	}
	out := new(kvscoutv1.ScoreResponse)
	p.s.call(p.t, scoreMethod, in, out)
	i := slices.IndexFunc(out.Workers, func(w *kvscoutv1.WorkerScore) bool { return int(w.Rank) == src.rank })
	if i < 0 || !out.Workers[i].Known || out.PromptTokens != uint32(q.PromptTokens) {
		p.t.Fatalf("request %d of %d tokens: %v", p.requests, q.PromptTokens, out)
	}
	p.compare(q, out.Workers[i])
	p.requests++
}

// compare holds an answer against the engine's numbers. Host memory adds what lies behind the device's run.
func (p *replayer) compare(q *recording.Request, w *kvscoutv1.WorkerScore) {
	p.t.Helper()
	got, want := int(w.ReusableTokens), q.CachedTokens
	if q.HasHost {
		for _, tier := range w.Tiers {
			if tier.Tier == kvscoutv1.Tier_TIER_HOST {
				got += int(tier.Tokens)
			}
		}
		// The engine always computes the last token, so a prompt held whole is reported a block short.
		got = min(got, (q.PromptTokens-1)/int(w.BlockSize)*int(w.BlockSize))
		want += q.HostCachedTokens
		if int(w.ReusableTokens) != q.CachedTokens {
			p.fail(q, w, "on the device", int(w.ReusableTokens), q.CachedTokens)
		}
	}
	ok := false
	switch w.Bound.Kind {
	case exact:
		ok = got == want
	case upper:
		ok = got >= want
	case lower:
		ok = got <= want
	}
	if !ok {
		p.fail(q, w, fmt.Sprint(w.Bound), got, want)
	}
	if w.Bound.Kind != exact {
		p.bounds++
	}
}

func (p *replayer) fail(q *recording.Request, w *kvscoutv1.WorkerScore, what string, got, want int) {
	p.t.Helper()
	p.wrong++
	p.t.Errorf("request %d (%s, %d tokens), %s: predicted %d, the engine took %d; %v", p.requests, q.ID, q.PromptTokens, what,
		got, want, w)
}
