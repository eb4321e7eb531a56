package e2e

import (
	"fmt"
	"testing"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"

	"github.com/kvscout/kvscout/test/testport"
)

// ranks starts an engine of two data-parallel ranks: rank 1 publishes and replays one port higher.
func ranks(t testing.TB, id string) (e0, e1 *engine) {
	t.Helper()
	port := testport.Free(t, replayOffset+2)
	e0 = startEngine(t, engineConfig{id: id, port: port, replay: true})
	e1 = startEngine(t, engineConfig{id: id, port: port + 1, rank: 1, replay: true})
	return e0, e1
}

// Case7: ranks of one worker have states of their own.
func TestCase7_TwoRanks(t *testing.T) {
	t.Parallel()
	e0, e1 := ranks(t, "w1")
	s := serve(t)
	spec := e0.worker()
	spec["worker"].(obj)["ranks"] = 2
	reg := new(kvscoutv1.RegisterWorkerResponse)
	s.curl(t, registerMethod, spec, reg)
	if len(reg.Worker.GetSources()) != 2 || reg.Worker.Sources[1].EventEndpoint != e1.endpoint() {
		t.Fatalf("two ranks wanted: %v", reg)
	}
	want := func(what string, rank0, rank1 uint32) {
		t.Helper()
		for rank, held := range []uint32{rank0, rank1} {
			same(t, what, s.scoreRank(t, "w1", uint32(rank), span(1, 5), nil), answer{held, held, exact, ""})
		}
	}
	for _, e := range []*engine{e0, e1} {
		e.hello(s)
		r := e.do(publish(stored(101, nil, span(1, 4))))
		s.reached(t, "w1", uint32(e.rank), r.Seq)
	}
	want("both store", 4, 4)
	r := e1.do(publish(obj{"type": "removed", "block_hashes": []int{101}}))
	s.reached(t, "w1", 1, r.Seq)
	want("rank 1 removes", 4, 0)

	gone := new(kvscoutv1.DeregisterWorkerResponse)
	s.call(t, deregisterMethod, obj{"workerId": "w1", "rank": 0}, gone)
	if resp := s.scores(t, span(1, 5), nil); !gone.Known || len(resp.Workers) != 1 || resp.Workers[0].Rank != 1 {
		t.Errorf("rank 1 alone wanted: %v, %v", gone, resp)
	}
}

// Case29 and case 28: another address replaces the worker; what the old one still says is ignored; and after leaving and
// coming back, the first numbers count.
func TestCase29_ReplacedAtOtherAddress(t *testing.T) {
	t.Parallel()
	a := startEngine(t, engineConfig{id: "w1", replay: true})
	b := startEngine(t, engineConfig{id: "w1", replay: true})
	s := serve(t)
	reg := new(kvscoutv1.RegisterWorkerResponse)
	s.call(t, registerMethod, a.worker(), reg)
	a.hello(s)
	s.reached(t, "w1", 0, a.do(publish(stored(101, nil, span(1, 8)))).Seq)
	s.call(t, registerMethod, b.worker(), reg)
	if !reg.Replaced {
		t.Error("not replaced")
	}
	a.do(publish(stored(103, 102, span(9, 12))))
	b.hello(s)
	st := s.reached(t, "w1", 0, b.do(publish(stored(201, nil, span(31, 34)))).Seq)
	same(t, "old address", s.score(t, "w1", span(1, 13)), answer{0, 0, exact, ""})
	same(t, "new address", s.score(t, "w1", span(31, 35)), answer{4, 4, exact, ""})
	if st.StoredEvents != 1 {
		t.Errorf("one store wanted: %v", st)
	}

	gone := new(kvscoutv1.DeregisterWorkerResponse)
	s.call(t, deregisterMethod, obj{"workerId": "w1"}, gone)
	b.restart()
	s.call(t, registerMethod, b.worker(), reg)
	b.hello(s)
	st = s.reached(t, "w1", 0, b.do(publish(stored(301, nil, span(1, 12)))).Seq)
	same(t, "registered again", s.score(t, "w1", span(1, 13)), answer{12, 12, exact, ""})
	if st.Gaps != 0 || st.Resets != 0 {
		t.Errorf("neither gap nor reset wanted: %v", st)
	}
}

// Case147: registering and leaving twice are the same as once; an endpoint that nobody serves is no error.
func TestCase147_Idempotent(t *testing.T) {
	t.Parallel()
	s := serve(t)
	spec := obj{"worker": obj{"workerId": "w1", "engine": "vllm", "model": "m", "eventEndpoint": fmt.Sprintf("tcp://127.0.0.1:%d", testport.Free(t, 1))}}
	for range 2 {
		reg := new(kvscoutv1.RegisterWorkerResponse)
		s.call(t, registerMethod, spec, reg)
		if reg.Replaced {
			t.Error("the same was called a replacement")
		}
	}
	s.inState(t, "w1", 0, connecting)
	list := new(kvscoutv1.ListWorkersResponse)
	s.call(t, listMethod, obj{"model": "m"}, list)
	if len(list.Workers) != 1 || list.Workers[0].Sources[0].Freshness.State != connecting {
		t.Errorf("one connecting worker wanted: %v", list)
	}
	for _, known := range []bool{true, false, false} {
		gone := new(kvscoutv1.DeregisterWorkerResponse)
		s.call(t, deregisterMethod, obj{"workerId": "w1"}, gone)
		if gone.Known != known {
			t.Errorf("known %v, want %v", gone.Known, known)
		}
	}
	s.fails(t, registerMethod, obj{}, failure{400, "invalid_argument", "BAD_WORKER"})
	s.fails(t, registerMethod, obj{"worker": obj{"workerId": "w1", "engine": "vllm2", "model": "m"}}, failure{400, "invalid_argument", "BAD_WORKER"})
}

// Case77: the identity is the registered id and nothing else; a stranger is answered as one, never by a bare zero.
func TestCase77_Strangers(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "192.0.2.1:8000", topic: "kv@192.0.2.1:8000@m", replay: true})
	s := serveFleet(t, []*engine{e})
	e.hello(s)
	s.reached(t, e.id, 0, e.serve(span(1, 9)).Seq)
	resp := s.scores(t, span(1, 9), obj{"candidates": []string{"192.0.2.1", e.id, "kv@192.0.2.1:8000@m"}})
	if len(resp.Workers) != 3 {
		t.Fatalf("three answers wanted: %v", resp)
	}
	for _, w := range resp.Workers {
		if w.WorkerId == e.id {
			same(t, w.WorkerId, w, answer{8, 8, exact, ""})
			continue
		}
		if got, want := answerOf(w), (answer{0, 0, lower, "UNKNOWN_WORKER"}); w.Known || got != want {
			t.Errorf("%s: known %v, %+v, want %+v", w.WorkerId, w.Known, got, want)
		}
	}
	// A candidate list without any known worker is answered, not refused.
	if resp = s.scores(t, span(1, 9), obj{"model": "m", "candidates": []string{"x"}}); len(resp.Workers) != 1 || resp.Workers[0].Known {
		t.Errorf("one unknown worker wanted: %v", resp)
	}
}

// Case96: two engines dial one port and are told apart by topic, each with numbers of its own.
func TestCase96_TopicsShareAPort(t *testing.T) {
	t.Parallel()
	port := testport.Free(t, 1)
	e1 := startEngine(t, engineConfig{id: "w1", dial: true, port: port, topic: "kv@w1@m"})
	e2 := startEngine(t, engineConfig{id: "w2", dial: true, port: port, topic: "kv@w2@m"})
	lost := startEngine(t, engineConfig{id: "w3", dial: true, port: port, topic: "kv@w3@m"})
	s := serveFleet(t, []*engine{e1, e2})
	for _, e := range []*engine{e1, e2} {
		e.hello(s)
	}
	var r1, r2 result
	for i := range uint32(20) {
		lost.serve(span(500, 504+4*i))
		r1 = e1.serve(span(1, 5+4*i))
		if i%2 == 0 {
			r2 = e2.serve(span(201, 205+4*i))
		}
	}
	s1, s2 := s.reached(t, "w1", 0, r1.Seq), s.reached(t, "w2", 0, r2.Seq)
	for _, st := range []*kvscoutv1.SourceStats{s1, s2} {
		if st.Gaps != 0 || st.Resets != 0 || st.Rejected["topic_mismatch"] != 0 {
			t.Errorf("neither gap nor reset wanted: %v", st)
		}
	}
	same(t, "w1", s.score(t, "w1", span(1, 81)), answer{80, 80, exact, ""})
	same(t, "w2", s.score(t, "w2", span(201, 281)), answer{76, 76, exact, ""})
	for _, id := range []string{"w1", "w2"} {
		same(t, "of the third", s.score(t, id, span(500, 504)), answer{0, 0, exact, ""})
	}
}

// A prefix of the topic is enough where the server dials, and another prefix hears nothing.
func TestTopicPrefix(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w1", topic: "kv@10.0.0.1:8000@m"})
	worker := func(id, topic string) obj {
		w := e.worker()
		w["worker"].(obj)["workerId"], w["worker"].(obj)["topic"] = id, topic
		return w
	}
	s := serve(t)
	for id, topic := range map[string]string{"w1": "kv@10.0.0.1:8000", "all": "", "other": "kv@10.0.0.2"} {
		s.call(t, registerMethod, worker(id, topic), new(kvscoutv1.RegisterWorkerResponse))
	}
	s.inState(t, "other", 0, stateUnknown)
	s.inState(t, "all", 0, stateUnknown)
	e.hello(s)
	s.await(t, "heard", "all", 0, func(st *kvscoutv1.SourceStats) bool {
		e.do(sent([]byte(e.topic)))
		return st.Rejected["bad_frames"] > 0
	})
	r := e.serve(span(1, 9))
	s.reached(t, "w1", 0, r.Seq)
	s.reached(t, "all", 0, r.Seq)
	same(t, "prefix", s.score(t, "w1", span(1, 9)), answer{8, 8, exact, ""})
	same(t, "no topic", s.score(t, "all", span(1, 9)), answer{8, 8, exact, ""})
	if w := s.score(t, "other", span(1, 9)); w.HeldTokens != 0 || w.Freshness.State != stateUnknown {
		t.Errorf("other prefix: %v", w)
	}
}

// Case143: workers that come and go while their engine publishes leave nothing behind, in either mode.
func TestCase143_RegisterAndLeave(t *testing.T) {
	t.Parallel()
	out := startEngine(t, engineConfig{id: "out", replay: true})
	in := startEngine(t, engineConfig{id: "in", dial: true, replay: true})
	s := serve(t)
	cycle := func(n int) {
		for i := range n {
			for _, e := range []*engine{out, in} {
				s.call(t, registerMethod, e.worker(), new(kvscoutv1.RegisterWorkerResponse))
				e.serve(span(1, uint32(5+4*(i%50))))
				if i%4 == 0 { // some stay long enough to hear something
					s.inState(t, e.id, 0, stateLive)
				}
				gone := new(kvscoutv1.DeregisterWorkerResponse)
				if s.call(t, deregisterMethod, obj{"workerId": e.id}, gone); !gone.Known {
					t.Fatal("the worker was not known")
				}
			}
		}
	}
	cycle(4)
	before, threads := s.files(t), s.status(t, "Threads")
	cycle(100)
	eventually(t, fmt.Sprintf("%d files open as before", before), func() bool { return s.files(t) <= before+2 })
	if now := s.status(t, "Threads"); now > threads+16 {
		t.Errorf("%d threads, before %d", now, threads)
	}
	stats := new(kvscoutv1.GetStatsResponse)
	s.call(t, statsMethod, obj{}, stats)
	if st := stats.Stats; len(st.Sources) != 0 || st.HolderBlocks != 0 || st.Blocks != 0 || st.Handles != 0 {
		t.Errorf("something is left: %v", st)
	}
}
