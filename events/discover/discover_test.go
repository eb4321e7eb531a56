package discover

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// source is rank r of a worker, listened to at a port.
func source(id string, r int, endpoint string) events.Source {
	return events.Source{Worker: id, Rank: r, Engine: events.EngineVLLM, Model: "m", Events: endpoint}
}

// Invariant 2: several discoverers name one worker.
func TestMerge(t *testing.T) {
	first, second := says("file"), says("cluster")
	r := run(t, Options{Discoverers: []Discoverer{first, second}})
	first.reports <- []Worker{{ID: "b", Model: "m", Labels: map[string]string{"zone": "file"}, Sources: []events.Source{{Engine: "vllm", Events: "tcp://file:1", SpeculativeEAGLE: true}}}}
	r.locked(func() {
		if r.told != 0 { // half of the list would take the other half's workers out
			t.Errorf("told before all have reported: %+v", r.last)
		}
	})
	second.reports <- []Worker{
		{ID: "b", Model: "other", Aliases: []string{"x"}, Labels: map[string]string{"zone": "cluster", "role": "decode"}, Sources: []events.Source{{Engine: "sglang", Version: "9", Events: "tcp://cluster:1", Topic: "t", Replay: "tcp://cluster:2"}}},
		{ID: "a", Model: "m", Sources: []events.Source{{Engine: "vllm"}}},
	}
	r.wait("both workers", func() bool { return len(r.last.Workers) == 2 })
	want := []Worker{
		{ID: "a", Model: "m", Sources: []events.Source{source("a", 0, "")}},
		{ID: "b", Model: "m", Role: RoleDecode, Aliases: []string{"x"}, Labels: map[string]string{"zone": "file", "role": "decode"}, Sources: []events.Source{
			{Worker: "b", Model: "m", Engine: "vllm", Version: "9", Events: "tcp://file:1", Replay: "tcp://cluster:2", SpeculativeEAGLE: true},
		}},
	}
	if diff := cmp.Diff(want, r.now().Workers); diff != "" {
		t.Error(diff)
	}
	// What the first no longer names is still named by the second.
	first.reports <- []Worker{}
	r.wait("the second's word", func() bool { w, ok := r.worker("b"); return ok && w.Model == "other" })
	second.reports <- []Worker{}
	r.wait("no worker", func() bool { return len(r.last.Workers) == 0 })
}

// Invariant 1: a discoverer that fails changes nothing, and shows.
func TestFailureKeeps(t *testing.T) {
	d := says("cluster")
	r := run(t, Options{Discoverers: []Discoverer{d}})
	d.reports <- []Worker{{ID: "w", Sources: []events.Source{source("w", 0, "tcp://h:1")}}}
	r.wait("the worker", func() bool { _, ok := r.worker("w"); return ok })
	d.reports <- errors.New("403 Forbidden")
	r.wait("the failure", func() bool { return r.last.Discoverers[0].Failures == 1 })
	d.reports <- []Worker{{Model: "no id"}}
	r.wait("the refusal", func() bool { return r.last.Discoverers[0].Failures == 2 })
	if _, ok := r.find("w"); !ok || r.now().Discoverers[0].Err == "" || r.now().Discoverers[0].Workers != 1 {
		t.Errorf("after failures: %+v", r.now())
	}
}

// A worker named by its address alone, over its life: it does not answer yet, it answers, it fails, it leaves things out,
// it moves its endpoint, it goes (invariants 3 and 6).
func TestAddressAlone(t *testing.T) {
	p, url := serve(t, map[string]string{"/kv_event_sources": "500"})
	d := says("file")
	r := run(t, Options{Discoverers: []Discoverer{d}, Asker: newAsker(t, AskerOptions{})})
	d.reports <- []Worker{{ID: "w", URL: url, Role: RoleDecode, Sources: []events.Source{{SpeculativeEAGLE: true}}}}
	r.wait("pending, with the reason", func() bool {
		return len(r.last.Pending) == 1 && strings.Contains(r.last.Pending[0].Why, "status 500")
	})
	p.set("/v1/models", vllmModels)
	p.set("/kv_event_sources", vllmSources)
	r.wait("two ranks", func() bool { w, ok := r.worker("w"); return ok && len(w.Sources) == 2 })
	known, _ := r.find("w")
	if known.Model != "tiny" || known.Role != RoleDecode || !known.Sources[1].SpeculativeEAGLE || known.Sources[1].Rank != 1 || known.Sources[0].Topic != "kv" {
		t.Errorf("told %+v", known)
	}
	p.set("/kv_event_sources", "500")
	r.wait("failures", func() bool { return r.last.AskFailed > 3 })
	p.set("/kv_event_sources", `[]`)
	p.set("/v1/models", `{"data":null}`)
	asked := r.now().Asked - r.now().AskFailed
	r.wait("answers that tell nothing", func() bool { return r.last.Asked-r.last.AskFailed > asked+1 })
	p.set("/kv_event_sources", strings.ReplaceAll(vllmSources, `"tcp://*:5567"`, "null"))
	asked = r.now().Asked - r.now().AskFailed
	r.wait("an answer without the replay", func() bool { return r.last.Asked-r.last.AskFailed > asked+1 })
	if now, ok := r.find("w"); !ok || !now.Equal(known) {
		t.Errorf("what was known has changed: %s", cmp.Diff(known, now))
	}
	p.set("/kv_event_sources", `[{"data_parallel_rank":0,"endpoint":"tcp://*:6000","replay_endpoint":"tcp://*:6001","topic":""}]`)
	r.wait("the new endpoint", func() bool {
		w, _ := r.worker("w")
		return len(w.Sources) == 1 && w.Sources[0].Events == "tcp://127.0.0.1:6000" && w.Sources[0].Replay == "tcp://127.0.0.1:6001"
	})
	d.reports <- []Worker{}
	r.wait("gone", func() bool { return len(r.last.Workers) == 0 && len(r.last.Pending) == 0 })
}

// What is stated is not overruled by what the worker tells.
func TestStatedGoesFirst(t *testing.T) {
	_, url := serve(t, map[string]string{"/kv_event_sources": vllmSources, "/v1/models": vllmModels})
	d := Static{"flags", []Worker{{ID: "w", URL: url, Model: "mine", Sources: []events.Source{{Engine: "vllm", Events: "tcp://mine:1"}}}}}
	r := run(t, Options{Discoverers: []Discoverer{d}, Asker: newAsker(t, AskerOptions{})})
	r.wait("the worker", func() bool { _, ok := r.worker("w"); return ok })
	w, _ := r.find("w")
	want := []events.Source{{Worker: "w", Engine: "vllm", Model: "mine", Events: "tcp://mine:1", Replay: "tcp://127.0.0.1:5567"}}
	if diff := cmp.Diff(want, w.Sources); diff != "" {
		t.Error(diff)
	}
}

// A worker whose description moves to another URL is asked there and no longer here.
func TestURLChanges(t *testing.T) {
	here, url := serve(t, map[string]string{"/kv_event_sources": vllmSources, "/v1/models": vllmModels})
	_, there := serve(t, map[string]string{"/server_info": sglangInfo})
	d := says("file")
	r := run(t, Options{Discoverers: []Discoverer{d}, Asker: newAsker(t, AskerOptions{})})
	d.reports <- []Worker{{ID: "w", URL: url}}
	r.wait("vLLM", func() bool { w, _ := r.worker("w"); return w.Model == "tiny" })
	d.reports <- []Worker{{ID: "w", URL: there}}
	r.wait("SGLang, and nothing of vLLM", func() bool { w, _ := r.worker("w"); return w.Model == "qwen" && w.Aliases == nil })
	n := here.hit("/kv_event_sources")
	asked := r.now().Asked
	r.wait("more questions", func() bool { return r.last.Asked > asked+3 })
	if more := here.hit("/kv_event_sources"); more > n+1 {
		t.Errorf("the old address was asked %d times more", more-n)
	}
}

// Rule 12 by the worker's own word: it is told ill after the grace, not at the first failure, and well again by itself.
func TestRule12_Health(t *testing.T) {
	p, url := serve(t, map[string]string{"/kv_event_sources": vllmSources, "/v1/models": vllmModels, "/health": "500"})
	d := Static{"flags", []Worker{{ID: "w", URL: url}}}
	r := run(t, Options{Discoverers: []Discoverer{d}, Asker: newAsker(t, AskerOptions{Health: 5 * time.Millisecond, Grace: 50 * time.Millisecond})})
	r.wait("the worker", func() bool { _, ok := r.worker("w"); return ok })
	hits := p.hit("/health")
	asked := r.now().Asked
	r.wait("time to pass", func() bool { return r.last.Asked > asked+5 && p.hit("/health") > hits })
	r.locked(func() {
		if _, told := r.ill["w"]; told {
			t.Error("a port that was never well is told ill")
		}
	})
	p.set("/health", "")
	hits = p.hit("/health")
	asked = r.now().Asked
	r.wait("a good look", func() bool { return p.hit("/health") > hits+1 && r.last.Asked > asked })
	p.set("/health", "500")
	r.wait("ill", func() bool { return r.ill["w"] != nil })
	p.set("/health", "")
	r.wait("well", func() bool { return r.ill["w"] == nil })
}

// Rule 12 by an orchestrator's word: a worker that is not ready is told ill once it can be listened to, ill again after it
// went and came back, and well when it is ready.
func TestRule12_Unready(t *testing.T) {
	d := says("kubernetes")
	r := run(t, Options{Discoverers: []Discoverer{d}})
	w := func(unready, endpoint string) []Worker {
		return []Worker{{ID: "w", Unready: unready, Sources: []events.Source{source("w", 0, endpoint)}}}
	}
	ill := func() bool { return r.ill["w"] != nil && r.ill["w"].Error() == "pod is not ready" }
	d.reports <- w("pod is not ready", "tcp://h:1")
	r.wait("ill", ill)
	d.reports <- w("", "tcp://h:1")
	r.wait("well", func() bool { _, told := r.ill["w"]; return told && r.ill["w"] == nil })
	d.reports <- w("pod is not ready", "tcp://h:2")
	r.wait("ill again", ill)
	d.reports <- []Worker{}
	r.wait("gone", func() bool { return len(r.last.Workers) == 0 })
	r.locked(func() { delete(r.ill, "w") }) // as the fleet forgets it
	d.reports <- w("pod is not ready", "tcp://h:2")
	r.wait("ill when it is back", ill)
}

// Grace and the first look, by the clock of the test.
func TestHealth_Grace(t *testing.T) {
	start := time.Unix(1000, 0)
	h := health{grace: 10 * time.Second}
	bad := errors.New("refused")
	for i, step := range []struct {
		after   time.Duration
		err     error
		changed bool
		ill     bool
	}{
		{0, bad, false, false}, {60 * time.Second, bad, false, false}, // never well: nothing is known
		{61 * time.Second, nil, false, false}, {70 * time.Second, bad, false, false}, {71 * time.Second, bad, true, true},
		{72 * time.Second, bad, false, false}, {73 * time.Second, nil, true, false}, {74 * time.Second, nil, false, false},
	} {
		if changed, why := h.look(step.err, start.Add(step.after)); changed != step.changed || (why != nil) != step.ill {
			t.Errorf("step %d: %v, %v", i, changed, why)
		}
	}
}

func TestRoleOf(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   string
	}{
		{nil, ""},
		{map[string]string{"llm-d.ai/role": "prefill"}, RolePrefill},
		{map[string]string{"llm-d.ai/role": "prefill-decode"}, RoleBoth},
		{map[string]string{"kvscout.io/role": "decode", "llm-d.ai/role": "prefill"}, RoleDecode},
		{map[string]string{"role": "kv_consumer"}, RoleDecode},
		{map[string]string{"role": "database"}, ""},
	} {
		if got := RoleOf(c.labels); got != c.want {
			t.Errorf("%v: %q, want %q", c.labels, got, c.want)
		}
	}
}

// A file is read again when its content changes, also behind a swapped link; a bad one keeps what is, and says so once.
func TestFile_Reload(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, path+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil { // as Kubernetes swaps a ConfigMap
			t.Fatal(err)
		}
	}
	parse := func(content []byte) (out []Worker, err error) {
		for id := range strings.FieldsSeq(string(content)) {
			if id == "bad" {
				return nil, errors.New("line 1: bad")
			}
			out = append(out, Worker{ID: id, Sources: []events.Source{source(id, 0, "tcp://h:1")}})
		}
		return out, nil
	}
	write("1", "a b")
	r := run(t, Options{Discoverers: []Discoverer{&File{Path: path, Parse: parse, Poll: 2 * time.Millisecond}}})
	r.wait("a and b", func() bool { return len(r.last.Workers) == 2 })
	write("2", "b bad")
	r.wait("the fault", func() bool { return strings.Contains(r.last.Discoverers[0].Err, "line 1: bad") })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.wait("the missing file", func() bool { return strings.Contains(r.last.Discoverers[0].Err, "no such file") })
	if len(r.now().Workers) != 2 || r.now().Discoverers[0].Failures != 2 {
		t.Errorf("after a bad and a missing file: %+v", r.now())
	}
	write("3", "b c")
	r.wait("b and c", func() bool { _, ok := r.worker("c"); return ok && len(r.last.Workers) == 2 })
	if s := r.now().Discoverers[0]; s.Err != "" || s.Reports != 2 {
		t.Errorf("%+v", s)
	}
}
