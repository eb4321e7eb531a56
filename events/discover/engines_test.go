package discover

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// The answers below have the form of the engines' own tests and of reference captures: vllm-project/vllm#55844 (a bare
// list), /v1/models with an adapter's parent, SGLang's describe_kv_events_publisher and server arguments.
const (
	vllmSources = `[{"data_parallel_rank":0,"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5567","topic":"kv"},
		{"data_parallel_rank":1,"endpoint":"tcp://*:5558","replay_endpoint":null,"topic":""}]`
	vllmModels = `{"object":"list","data":[{"id":"tiny","object":"model","root":"/m","parent":null},
		{"id":"tiny-alias","root":"/m","parent":null},{"id":"lora-b","root":"/l","parent":"tiny"},{"id":"lora-a","root":"/l","parent":"tiny"}]}`
	sglangInfo = `{"model_path":"/models/qwen","served_model_name":"qwen","version":"0.5.23","page_size":16,"dcp_size":1,
		"disaggregation_mode":"prefill","speculative_algorithm":"EAGLE3","kv_events_config":"{\"publisher\": \"zmq\", \"format\": \"dynamo\"}",
		"kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"","block_size":16,"dp_size":2,
		"replay_endpoint_port_base":5657,"load_endpoint_port_base":5559}}`
)

func TestVLLM(t *testing.T) {
	_, url := serve(t, map[string]string{"/kv_event_sources": vllmSources, "/v1/models": vllmModels, "/version": `{"version":"0.32.0"}`})
	got, err := ask(t, url, "")
	if err != nil {
		t.Fatal(err)
	}
	want := &Worker{
		Model: "tiny", Aliases: []string{"tiny-alias"}, Adapters: []string{"lora-a", "lora-b"},
		Sources: []events.Source{
			{Engine: "vllm", Version: "0.32.0", Events: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5567", Topic: "kv"},
			{Rank: 1, Engine: "vllm", Version: "0.32.0", Events: "tcp://127.0.0.1:5558"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The answer of a running vLLM 0.32 with two ranks, as it was sent; and what is said of ranks that publish nothing.
func TestVLLM_ByRank(t *testing.T) {
	const running = `{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:43429","replay_endpoint":"tcp://*:53953",` +
		`"buffer_steps":10000,"hwm":100000,"max_queue_size":100000,"topic":"kv@127.0.0.1@tiny-qwen3"},` +
		`"1":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:43430","replay_endpoint":"tcp://*:53954",` +
		`"buffer_steps":10000,"hwm":100000,"max_queue_size":100000,"topic":"kv@127.0.0.1@tiny-qwen3"}}`
	first := events.Source{
		Engine: "vllm", Events: "tcp://127.0.0.1:43429", Replay: "tcp://127.0.0.1:53953", Topic: "kv@127.0.0.1@tiny-qwen3",
	}
	second := first
	second.Rank, second.Events, second.Replay = 1, "tcp://127.0.0.1:43430", "tcp://127.0.0.1:53954"
	for answer, want := range map[string][]events.Source{
		running: {first, second},
		"{}":    nil, // not ready yet, or it only renders
		`{"0":{"enable_kv_cache_events":false,"publisher":"null","endpoint":"tcp://*:5557","replay_endpoint":null,"topic":""}}`: nil,
	} {
		_, url := serve(t, map[string]string{"/kv_event_sources": answer})
		got, err := ask(t, url, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Sources); diff != "" {
			t.Errorf("%s: %s", answer, diff)
		}
	}
}

func TestSGLang(t *testing.T) {
	_, url := serve(t, map[string]string{"/server_info": sglangInfo})
	got, err := ask(t, url, "")
	if err != nil {
		t.Fatal(err)
	}
	src := events.Source{
		Engine: "sglang", Version: "0.5.23", BlockSize: 16, PairKeys: true, HashFormat: "dynamo",
		Events: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5657",
	}
	second := src
	second.Rank, second.Events, second.Replay = 1, "tcp://127.0.0.1:5558", "tcp://127.0.0.1:5658"
	if diff := cmp.Diff(&Worker{Model: "qwen", Role: RolePrefill, Sources: []events.Source{src, second}}, got); diff != "" {
		t.Error(diff)
	}
}

// With decode context parallelism the published block is wider than the page; without events there is nothing to listen
// to; a stated engine is asked alone.
func TestSGLang_Forms(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want Worker
	}{
		"context parallel": {
			`{"page_size":16,"dcp_size":4,"served_model_name":"m","kv_events":{"publisher":"zmq","endpoint_host":"10.1.2.3","endpoint_port_base":1,"block_size":16,"dp_size":1}}`,
			Worker{Model: "m", Sources: []events.Source{{Engine: "sglang", BlockSize: 64, Events: "tcp://10.1.2.3:1"}}},
		},
		"no events":   {`{"model_path":"m","page_size":1,"kv_events":null,"speculative_algorithm":null,"disaggregation_mode":"null"}`, Worker{Model: "m"}},
		"v6 wildcard": {`{"model_path":"m","kv_events":{"endpoint_host":"::","endpoint_port_base":7,"dp_size":0}}`, Worker{Model: "m", Sources: []events.Source{{Engine: "sglang", Events: "tcp://127.0.0.1:7"}}}},
	} {
		p, url := serve(t, map[string]string{"/server_info": c.body})
		got, err := ask(t, url, events.EngineSGLang)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(&c.want, got); diff != "" || p.hit("/kv_event_sources") != 0 {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TensorRT-LLM tells its fingerprint, not where its events are.
func TestTensorRTLLM(t *testing.T) {
	_, url := serve(t, map[string]string{
		"/server_info": `{"role":"worker","schema_version":1,"render_fingerprint":{"digest":"d1"}}`, "/v1/models": `{"data":[{"id":"m"}]}`,
	})
	got, err := ask(t, url, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Worker{Model: "m", Fingerprint: "d1", Sources: []events.Source{{Engine: "trtllm"}}}, got); diff != "" {
		t.Error(diff)
	}
}

// Invariants 4 and 5: what an answer must not do.
func TestRule17_HostileAnswers(t *testing.T) {
	sources := func(endpoint string) map[string]string {
		return map[string]string{"/kv_event_sources": `[{"data_parallel_rank":0,"endpoint":"` + endpoint + `"}]`}
	}
	other, otherURL := serve(t, map[string]string{"/": vllmSources})
	for name, c := range map[string]struct {
		bodies map[string]string
		want   error
	}{
		"metadata":      {sources("tcp://169.254.169.254:80"), ErrRefused},
		"mapped":        {sources("tcp://[::ffff:169.254.169.254]:80"), ErrRefused},
		"link-local":    {sources("tcp://[fe80::1%25eth0]:80"), ErrRefused},
		"alibaba":       {sources("tcp://100.100.100.200:80"), ErrRefused},
		"other name":    {sources("tcp://metadata.google.internal:80"), ErrRefused},
		"local socket":  {sources("ipc:///var/run/docker.sock"), ErrRefused},
		"no port":       {sources("tcp://10.0.0.1"), ErrRefused},
		"port 0":        {sources("tcp://*:0"), events.ErrSource},
		"redirect":      {map[string]string{"/kv_event_sources": otherURL + "/"}, ErrAnswer},
		"too long":      {map[string]string{"/kv_event_sources": "[" + strings.Repeat(" ", maxAnswer) + "]"}, ErrAnswer},
		"no JSON":       {map[string]string{"/kv_event_sources": "<html>"}, ErrAnswer},
		"no rank":       {map[string]string{"/kv_event_sources": `{"first":{"endpoint":"tcp://*:1"}}`}, ErrAnswer},
		"not by rank":   {map[string]string{"/kv_event_sources": `{"sources":[]}`}, ErrAnswer},
		"same rank":     {map[string]string{"/kv_event_sources": `{"1":{"endpoint":"tcp://*:1"},"01":{"endpoint":"tcp://*:2"}}`}, ErrAnswer},
		"below 0":       {map[string]string{"/kv_event_sources": `{"-1":{"endpoint":"tcp://*:1"}}`}, ErrAnswer},
		"many ranks":    {map[string]string{"/kv_event_sources": "[" + strings.Repeat("{},", maxRanks) + "{}]"}, ErrAnswer},
		"rank twice":    {map[string]string{"/kv_event_sources": `[{"data_parallel_rank":1,"endpoint":"tcp://*:1"},{"data_parallel_rank":1,"endpoint":"tcp://*:2"}]`}, ErrAnswer},
		"negative":      {map[string]string{"/kv_event_sources": `[{"data_parallel_rank":-1,"endpoint":"tcp://*:1"}]`}, ErrAnswer},
		"nothing":       {nil, ErrAnswer},
		"ranks":         {map[string]string{"/server_info": `{"page_size":1,"kv_events":{"endpoint_port_base":1,"dp_size":1000000000}}`}, ErrAnswer},
		"colliding":     {map[string]string{"/server_info": `{"page_size":1,"kv_events":{"endpoint_port_base":1,"replay_endpoint_port_base":2,"dp_size":2}}`}, ErrAnswer},
		"page overflow": {map[string]string{"/server_info": `{"page_size":1,"dcp_size":1000000,"kv_events":{"endpoint_port_base":1,"block_size":1000000}}`}, ErrAnswer},
		"publisher":     {map[string]string{"/server_info": `{"page_size":1,"kv_events":{"publisher":"kafka","endpoint_port_base":1}}`}, ErrAnswer},
	} {
		_, url := serve(t, c.bodies)
		if w, err := ask(t, url, ""); !errors.Is(err, c.want) || w != nil {
			t.Errorf("%s: %+v, %v, want %v", name, w, err, c.want)
		}
	}
	if n := other.hit("/"); n != 0 {
		t.Errorf("the target of a redirect was asked %d times", n)
	}
}

func TestPolicy(t *testing.T) {
	inside, err := ParsePolicy([]string{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for addr, c := range map[string]struct{ any, inside bool }{
		"10.1.2.3": {true, true}, "::ffff:10.1.2.3": {true, true}, "192.0.2.7": {true, true}, "2001:db8::1": {true, true},
		"192.0.2.8": {true, false}, "127.0.0.1": {true, false},
		"169.254.169.254": {}, "169.254.0.1": {}, "fe80::1": {}, "0.0.0.0": {}, "::": {}, "224.0.0.1": {}, "ff02::1": {},
		"255.255.255.255": {}, "100.100.100.200": {}, "192.0.0.192": {}, "168.63.129.16": {}, "fd00:ec2::254": {},
	} {
		a := netip.MustParseAddr(addr)
		if got := (Policy{}).Check(a) == nil; got != c.any {
			t.Errorf("%s: allowed by default %v, want %v", addr, got, c.any)
		}
		if got := inside.Check(a) == nil; got != c.inside {
			t.Errorf("%s: allowed inside %v, want %v", addr, got, c.inside)
		}
	}
	if _, err := ParsePolicy([]string{"example.org"}); !errors.Is(err, ErrRefused) {
		t.Errorf("a name: %v", err)
	}
}

// A worker's own URL is held to the policy at the moment it is dialled, whatever its name resolves to.
func TestPolicy_AtTheDial(t *testing.T) {
	p, url := serve(t, map[string]string{"/kv_event_sources": vllmSources})
	policy, err := ParsePolicy([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1)} {
		base, host, _ := parseBase(u)
		if _, err := newAsker(t, AskerOptions{Policy: policy}).ask(t.Context(), base, host, ""); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", u, err)
		}
	}
	if n := p.hit("/kv_event_sources"); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestCheckURL(t *testing.T) {
	for _, bad := range []string{"", "10.0.0.1:8000", "ftp://h", "http://", "http://user:secret@h", "http://h?a=b", "http://h#f", "http://%zz"} {
		err := CheckURL(bad)
		if !errors.Is(err, ErrWorker) {
			t.Errorf("%q: %v", bad, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a credential is in %v", err)
		}
	}
	if base, host, err := parseBase("http://[2001:db8::1]:8000/engine/"); base != "http://[2001:db8::1]:8000/engine" || host != "2001:db8::1" || err != nil {
		t.Errorf("%q, %q, %v", base, host, err)
	}
}
