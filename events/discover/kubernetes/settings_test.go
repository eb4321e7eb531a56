package kubernetes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// Settings by annotation and label: annotations go first, ports are the pod's own, ranks publish on following ports as
// engines do.
func TestSettings(t *testing.T) {
	annotations := map[string]string{
		"kvscout.io/engine": "sglang", "kvscout.io/model": "org/m", "kvscout.io/block-size": "64", "kvscout.io/ranks": "2",
		"kvscout.io/events-port": "5557", "kvscout.io/topic": "kv", "kvscout.io/version": "0.5.22", "kvscout.io/eagle": "true",
		"kvscout.io/hash-format": "dynamo", "kvscout.io/unpublished": "sliding_window,recurrent_state", "kvscout.io/aliases": "a,b",
		"kvscout.io/reuse-reports": "true", "kvscout.io/ask": "false", "other.io/unknown": "x",
		"kvscout.io/render-fingerprint": "9f86d0",
	}
	labels := map[string]string{"kvscout.io/engine": "vllm", "kvscout.io/role": "prefill", "kvscout.io/replay-port": "5600", "kvscout.io/worker": "true"}
	s, err := readSettings(annotations, labels)
	if err != nil {
		t.Fatal(err)
	}
	if s.role != "prefill" || s.model != "org/m" || s.fingerprint != "9f86d0" || s.ask || !cmp.Equal(s.aliases, []string{"a", "b"}) {
		t.Errorf("read %+v", s)
	}
	source := func(rank int, live, replay string) events.Source {
		return events.Source{
			Rank: rank, Engine: "sglang", Version: "0.5.22", BlockSize: 64, Events: live, Replay: replay, Topic: "kv", PairKeys: true,
			ReuseReports: true, HashFormat: "dynamo", Unpublished: []events.Hidden{events.HiddenWindow, events.HiddenState},
		}
	}
	want := []events.Source{
		source(0, "tcp://10.0.0.7:5557", "tcp://10.0.0.7:5600"), source(1, "tcp://10.0.0.7:5558", "tcp://10.0.0.7:5601"),
	}
	got, err := s.sources("w", "10.0.0.7")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// Nothing stated leaves all to the worker: one source that speaks of every rank.
func TestSettings_None(t *testing.T) {
	s, err := readSettings(nil, map[string]string{"app": "x"})
	if err != nil || !s.ask {
		t.Fatalf("%+v, %v", s, err)
	}
	if got, err := s.sources("w", "h"); err != nil || !cmp.Equal(got, []events.Source{{}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSettings_Faults(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"role", "chef", "prefill, decode or both"},
		{"block-size", "0", "want a number of 1"},
		{"block-size", "sixteen", `kvscout.io/block-size="sixteen"`},
		{"ranks", "5000", "want a number of 1 to 4096"},
		{"ranks", "2", "events-port is missing"},
		{"replay-port", "5558", "events-port is missing"},
		{"ask", "false", "events-port is missing"},
		{"ask", "perhaps", "invalid syntax"},
		{"events-port", "zmq", "want a port number"},
		{"events-port", "70000", "want a port number"},
		{"events-port", "-1", "want a port number"},
		{"port", "70000", "is no port"},
		{"port", "no such port name", "is no port"},
		{"engine", "llama", `engine "llama"`},
		{"hash-format", "dynamo", "SGLang's"},
		{"speculative", "medusa", "only eagle"},
		{"unpublished", "secrets", `unpublished "secrets"`},
		{"blocksize", "16", "annotation kvscout.io/blocksize is unknown"},
		{"model", strings.Repeat("m", 2000), "2000 bytes, limit 1024"},
	} {
		_, err := readSettings(map[string]string{prefix + c.key: c.value}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%.20q: %v, want %q", c.key, c.value, err, c.want)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("%s: an error of %d bytes", c.key, len(err.Error()))
		}
	}
}

// The serving port: by number, by name, the only TCP one; an annotation goes first and must be right.
func TestChoosePort(t *testing.T) {
	two := []port{{"http", 8000, "TCP"}, {"zmq", 5557, ""}}
	for _, c := range []struct {
		configured, annotated string
		ports                 []port
		want                  uint16
		err                   bool
	}{
		{"http", "", two, 8000, false},
		{"zmq", "", two, 5557, false},
		{"9000", "", two, 9000, false},
		{"9000", "zmq", two, 5557, false},
		{"http", "8001", nil, 8001, false},
		{"http", "", []port{{"", 80, "TCP"}, {"dns", 53, "UDP"}}, 80, false},
		{"http", "web", []port{{"", 80, "TCP"}}, 0, true},
		{"web", "", two, 0, true},
		{"http", "", nil, 0, true},
		{"http", "", []port{{"http", 8000, "UDP"}}, 0, true},
		{"http", "", []port{{"http", 0, "TCP"}}, 0, true},
	} {
		got, err := translator{port: c.configured}.choose(settings{port: c.annotated}, c.ports)
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%q/%q of %v: %d, %v", c.configured, c.annotated, c.ports, got, err)
		}
	}
}
