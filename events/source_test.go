package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSource(t *testing.T) {
	for _, c := range []struct {
		text string
		want Source
	}{
		{"id=w0,engine=vllm,model=M,block-size=16,events=tcp://HOST:5557,replay=tcp://HOST:5567,rank=0",
			Source{Worker: "w0", Engine: EngineVLLM, Model: "M", BlockSize: 16, Events: "tcp://HOST:5557", Replay: "tcp://HOST:5567"}},
		{"worker=10.0.0.1:8000, engine=sglang ,rank=3,topic=kv@a,version=0.5.23,eagle=true,hash-format=dynamo,unpublished=namespace+sliding_window",
			Source{Worker: "10.0.0.1:8000", Engine: EngineSGLang, Rank: 3, Topic: "kv@a", Version: "0.5.23", PairKeys: true,
				HashFormat: HashFormatDynamo, Unpublished: []Hidden{HiddenNamespace, HiddenWindow}}},
		{"id=w,engine=vllm,speculative=eagle,reuse-reports=true", Source{Worker: "w", Engine: EngineVLLM, SpeculativeEAGLE: true, ReuseReports: true}},
		{"id=w,engine=trtllm,events=ipc:///run/kv.sock,model=a=b", Source{Worker: "w", Engine: EngineTRTLLM, Events: "ipc:///run/kv.sock", Model: "a=b"}},
		{"id=w,engine=sglang,hash-format=default,unpublished=recurrent_state",
			Source{Worker: "w", Engine: EngineSGLang, HashFormat: "default", Unpublished: []Hidden{HiddenState}}},
	} {
		got, err := ParseSource(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestParseSource_Errors(t *testing.T) {
	for _, c := range []struct {
		text string
		says string // what the message must name
	}{
		{"", "key=value"},
		{"w0", `"w0"`},
		{"id=w,engine=vllm,", "key=value"},
		{"engine=vllm", "id is missing"},
		{"id=w", `engine ""`},
		{"id=a,engine=vllm,id=b", "id is given twice"},
		{"id=w,engine=ollama", `"ollama"`},
		{"id=w,engine=vllm,colour=red", `"colour"`},
		{"id=w,engine=vllm,rank=x", `rank="x"`},
		{"id=w,engine=vllm,rank=-1", "rank -1"},
		{"id=w,engine=vllm,block-size=-16", "block size -16"},
		{"id=w,engine=vllm,block-size=16k", `"16k"`},
		{"id=w,engine=vllm,speculative=medusa", `"medusa"`},
		{"id=w,engine=vllm,reuse-reports=maybe", `"maybe"`},
		{"id=w,engine=vllm,hash-format=dynamo", "SGLang"},
		{"id=w,engine=sglang,hash-format=md5", `"md5"`},
		{"id=w,engine=sglang,unpublished=everything", `"everything"`},
		{"id=w,engine=sglang,unpublished=", `""`},
		{"id=w,engine=vllm,events=5557", `"5557"`},
		{"id=w,engine=vllm,events=udp://h:1", `"udp://h:1"`},
		{"id=w,engine=vllm,replay=tcp://h", `"tcp://h"`},
	} {
		_, err := ParseSource(c.text)
		if !errors.Is(err, ErrSource) {
			t.Errorf("%q: %v, want ErrSource", c.text, err)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %q does not say %s", c.text, err, c.says)
		}
	}
	_, err := ParseSource("rank=-1,engine=x,hash-format=y")
	for _, fault := range []string{"id is missing", "rank -1", `"x"`, `"y"`} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%v does not say %s: not all faults are told", err, fault)
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	for _, c := range []struct {
		text string
		want Endpoint
	}{
		{"tcp://10.0.0.5:5557", Endpoint{Network: "tcp", Address: "10.0.0.5:5557"}},
		{"tcp://node-a:5557", Endpoint{Network: "tcp", Address: "node-a:5557"}},
		{"tcp://[fe80::1]:5557", Endpoint{Network: "tcp", Address: "[fe80::1]:5557"}},
		{"tcp://*:5557", Endpoint{Network: "tcp", Address: ":5557", Bind: true}},
		{"tcp://*:0", Endpoint{Network: "tcp", Address: ":0", Bind: true}},
		{"tcp://0.0.0.0:5557", Endpoint{Network: "tcp", Address: "0.0.0.0:5557", Bind: true}},
		{"tcp://[::]:5557", Endpoint{Network: "tcp", Address: "[::]:5557", Bind: true}},
		{"ipc:///tmp/kv", Endpoint{Network: "unix", Address: "/tmp/kv"}},
	} {
		got, err := ParseEndpoint(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
	for _, text := range []string{"", "tcp", "tcp://", "tcp://:5557", "tcp://h", "tcp://h:", "tcp://h:0", "tcp://h:65536",
		"tcp://h:-1", "tcp://::1:5557", "inproc://x", "h:5557", "http://h:80", "ipc://"} {
		if got, err := ParseEndpoint(text); !errors.Is(err, ErrSource) {
			t.Errorf("%q: %+v, %v, want ErrSource", text, got, err)
		}
	}
}

func TestParseID(t *testing.T) {
	for _, c := range []struct {
		id     string
		worker string
		rank   int
		fails  bool
	}{
		{"w0", "w0", 0, false},
		{"w0/0", "w0", 0, false},
		{"10.0.0.1:8000/7", "10.0.0.1:8000", 7, false},
		{"ns/pod/1", "ns/pod", 1, false},
		{"w0/x", "", 0, true},
		{"w0/-1", "", 0, true},
		{"w0/", "", 0, true},
		{"/1", "", 0, true},
		{"", "", 0, true},
	} {
		worker, rank, err := ParseID(c.id)
		if worker != c.worker || rank != c.rank || errors.Is(err, ErrSource) != c.fails {
			t.Errorf("%q is %q rank %d, %v", c.id, worker, rank, err)
		}
	}
}

func TestHides(t *testing.T) {
	s := Source{Unpublished: []Hidden{HiddenWindow}}
	if !s.Hides(HiddenWindow) || s.Hides(HiddenState) || (Source{}).Hides(HiddenNamespace) {
		t.Error("Hides does not follow Unpublished")
	}
}

// Rank r publishes on port + r (wire.md 1.10), and two ranks never share an endpoint (Quirk39).
func TestRanks(t *testing.T) {
	type ends struct{ events, replay string }
	for _, c := range []struct {
		name           string
		events, replay string
		n              int
		want           []ends
	}{
		{"one", "tcp://h:5557", "", 1, []ends{{"tcp://h:5557", ""}}},
		{"none stated", "tcp://h:5557", "", 0, []ends{{"tcp://h:5557", ""}}},
		{"one of ipc", "ipc:///x", "", 1, []ends{{"ipc:///x", ""}}},
		{"two", "tcp://h:5557", "tcp://h:5567", 2, []ends{{"tcp://h:5557", "tcp://h:5567"}, {"tcp://h:5558", "tcp://h:5568"}}},
		{"bound", "tcp://*:5557", "", 2, []ends{{"tcp://*:5557", ""}, {"tcp://*:5558", ""}}},
		{"IPv6", "tcp://[::1]:5557", "", 2, []ends{{"tcp://[::1]:5557", ""}, {"tcp://[::1]:5558", ""}}},
		{"no endpoints", "", "", 2, []ends{{}, {}}},
		{"replay beside events", "tcp://h:5557", "tcp://h:5558", 2, nil},
		{"over the last port", "tcp://h:65535", "", 2, nil},
		{"port 0", "tcp://*:0", "", 2, nil},
		{"ipc", "ipc:///x", "", 2, nil},
		{"too many", "", "", 1 << 30, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := Source{Worker: "w", Rank: 4, Events: c.events, Replay: c.replay}.Ranks(c.n)
			if errors.Is(err, ErrSource) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			var got []ends
			for i, s := range out {
				got = append(got, ends{s.Events, s.Replay})
				if s.Rank != 4+i || s.Worker != "w" {
					t.Errorf("source %d is %s", i, s.ID())
				}
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(ends{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParseSource: no text panics, and a source that is accepted is valid, can be named, and can be spread.
func FuzzParseSource(f *testing.F) {
	f.Add("id=w0,engine=vllm,model=M,block-size=16,events=tcp://HOST:5557,replay=tcp://HOST:5567,rank=0")
	f.Add("id=a/b,engine=sglang,eagle=true,unpublished=namespace+sliding_window,hash-format=dynamo,events=tcp://*:1")
	f.Add("id=w,engine=trtllm,events=ipc:///x,speculative=eagle")
	f.Add("events=tcp://[::]:65535,id==,engine=vllm,rank=-0")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSource(text)
		if err != nil {
			if !errors.Is(err, ErrSource) {
				t.Errorf("%q: %v, want ErrSource", text, err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%q was accepted, then: %v", text, err)
		}
		if worker, rank, err := ParseID(s.ID()); worker != s.Worker || rank != s.Rank || err != nil {
			t.Errorf("%q is named %q, which is %q rank %d, %v", text, s.ID(), worker, rank, err)
		}
		out, err := s.Ranks(3)
		if err != nil {
			return
		}
		for _, r := range out {
			if err := r.Validate(); err != nil {
				t.Errorf("%q spread: %v", text, err)
			}
		}
	})
}
