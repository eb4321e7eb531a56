package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// resolve reads the settings of a server as runServe does.
func resolve(args ...string) (serveOptions, *pflag.FlagSet, error) {
	var o serveOptions
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(f)
	if err := f.Parse(args); err != nil {
		return o, f, err
	}
	if err := applyEnv(f); err != nil {
		return o, f, err
	}
	return o, f, o.resolve(f)
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, "c.yaml", `
listen: 127.0.0.1:1
stale_after: 1s
max_prompt_tokens: 1
weight_host: 0.1
`)
	t.Setenv("KVSCOUT_CONFIG", file)
	t.Setenv("KVSCOUT_LISTEN", "127.0.0.1:2")
	t.Setenv("KVSCOUT_STALE_AFTER", "2s")
	t.Setenv("KVSCOUT_MAX_PROMPT_TOKENS", "") // as none
	o, _, err := resolve("--listen", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	if o.listen != "127.0.0.1:3" || o.staleAfter != 2*time.Second || o.maxPromptTokens != 1 || o.weights[events.TierHost] != 0.1 {
		t.Errorf("flag, variable, file: got %q, %v, %d, %v", o.listen, o.staleAfter, o.maxPromptTokens, o.weights)
	}
	if o.shutdownGrace != 10*time.Second || o.weights[events.TierDevice] != 1 {
		t.Errorf("defaults: got %v, %v", o.shutdownGrace, o.weights)
	}
}

func TestRepeatedFlags(t *testing.T) {
	file := writeFile(t, "c.yaml", `
sources: ["id=f,engine=vllm,model=m"]
workers: [{id: w, engine: sglang, model: m}]
`)
	ids := func(o serveOptions) (out []string) {
		for _, w := range o.workers {
			out = append(out, w.ID)
		}
		return out
	}
	for _, c := range []struct {
		env  string
		args []string
		want []string
	}{
		{"", nil, []string{"w", "f"}},
		{"id=a,engine=vllm,model=m;id=b,engine=vllm,model=m", nil, []string{"w", "a", "b"}},
		{"id=a,engine=vllm,model=m", []string{"--source", "id=c,engine=vllm,model=m", "--source", "id=d,engine=vllm,model=m"}, []string{"w", "c", "d"}},
	} {
		t.Setenv("KVSCOUT_SOURCE", c.env)
		o, _, err := resolve(append(c.args, "--config", file)...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, ids(o)); diff != "" {
			t.Errorf("variable %q, flags %q: %s", c.env, c.args, diff)
		}
	}
}

func TestBadVariable(t *testing.T) {
	t.Setenv("KVSCOUT_STALE_AFTER", "soon")
	r := run(t, "serve")
	if r.code != exitUsage {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, "KVSCOUT_STALE_AFTER", "soon")
}

// A variable that no command knows is told, by its name only; those of other commands and empty ones are not.
func TestCase149_UnknownVariables(t *testing.T) {
	t.Setenv("KVSCOUT_LISTN", "tcp://secret")
	t.Setenv("KVSCOUT_SERVER", "http://127.0.0.1:1")
	t.Setenv("KVSCOUT_NOTHING", "")
	_, log := startServe(t, "--listen", "127.0.0.1:0")
	wants(t, log.String(), "KVSCOUT_LISTN")
	for _, not := range []string{"secret", "KVSCOUT_SERVER", "KVSCOUT_NOTHING"} {
		if strings.Contains(log.String(), not) {
			t.Errorf("%q is in the log:\n%s", not, log)
		}
	}
}

func TestCase149_UnknownKeysStopTheStart(t *testing.T) {
	for name, c := range map[string]struct{ text, key, line string }{
		"mistyped":        {"listen: 127.0.0.1:0\nblocksize: 16\n", `"blocksize"`, "line 2"},
		"mistyped worker": {"workers:\n  - id: w\n    engine: vllm\n    model: m\n    blocksize: 16\n", `"blocksize"`, "line 5"},
		"misplaced":       {"block_size: 16\n", `"block_size"`, "line 1"},
		"nested":          {"serve:\n  listen: 127.0.0.1:0\n", `"serve"`, "line 1"},
		"nested value":    {"listen:\n  address: 127.0.0.1:0\n", `"listen"`, "line 1"},
		"nested worker":   {"workers:\n  - worker:\n      id: w\n", `"worker"`, "line 2"},
		"dashes":          {"log-level: info\n", `"log-level"`, "line 1"},
		"twice":           {"log_level: info\nlog_level: warn\n", `"log_level"`, "line 2"},
		"bad value":       {"stale_after: soon\n", `"stale_after"`, "line 1"},
		"no value":        {"stale_after:\n", `"stale_after"`, "line 1"},
		"no list":         {"sources: id=w,engine=vllm,model=m\n", `"sources"`, "line 1"},
		"workers no list": {"workers: {id: w}\n", `"workers"`, "line 1"},
		"worker type":     {"workers:\n  - id: w\n    engine: vllm\n    block_size: many\n", `"block_size"`, "line 4"},
		"alias":           {"log_level: &a info\nlog_format: *a\n", `"log_format"`, "line 2"},
		"config in file":  {"config: other.yaml\n", `"config"`, "line 1"},
		"second document": {"log_level: info\n---\nlog_level: warn\n", "second document", "line 2"},
		"no mapping":      {"- listen\n", "want keys and values", "line 1"},
		"no yaml":         {"log_level: info\na: b: c\n", "yaml", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, "serve", "--config", writeFile(t, "c.yaml", c.text))
			if r.code != exitUsage || r.out != "" {
				t.Errorf("exits with %d", r.code)
			}
			wants(t, r.err, c.key, c.line, "c.yaml")
		})
	}
}

func TestCase115_EngineNames(t *testing.T) {
	file := writeFile(t, "c.yaml", "workers:\n  - {id: w, engine: typo, model: m}\n")
	for _, args := range [][]string{{"--source", "id=w,engine=typo,model=m"}, {"--config", file}} {
		r := run(t, append([]string{"serve"}, args...)...)
		if r.code != exitUsage {
			t.Errorf("%q: exits with %d", args, r.code)
		}
		wants(t, r.err, `engine "typo" is not vllm, sglang or trtllm`)
	}
	address, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", "id=w,engine=sglang,model=m,eagle=true,block-size=1")
	wants(t, ok(t, "workers", "--server", address), "sglang")
	spec := okJSON(t, "workers", "--server", address, "--json")["workers"].([]any)[0].(map[string]any)["spec"].(map[string]any)
	if spec["engine"] != "sglang" || spec["pairKeys"] != true {
		t.Errorf("the server shows %v", spec)
	}
}

func TestCase150_Ports(t *testing.T) {
	const v6 = "tcp://[2001:db8::1]:5557"
	for name, c := range map[string]struct{ text, want string }{
		"offset":     {"- {id: w, engine: vllm, model: m, events: 'tcp://h:5557', replay: 'tcp://h:5559', ranks: 4}", "tcp://h:5559"},
		"port 0":     {"- {id: w, engine: vllm, model: m, events: 'tcp://*:0', ranks: 2}", "cannot be offset"},
		"two events": {"- {id: a, engine: vllm, model: m, events: 'tcp://h:1'}\n  - {id: b, engine: vllm, model: m, events: 'tcp://h:1'}", "events of a/0 and events of b/0"},
		"replay":     {"- {id: a, engine: vllm, model: m, events: 'tcp://h:1', replay: 'tcp://h:1'}", "events of a/0 and replay of a/0"},
		"across":     {"- {id: a, engine: vllm, model: m, events: 'tcp://h:1', ranks: 2}\n  - {id: b, engine: vllm, model: m, events: 'tcp://h:9', replay: 'tcp://h:2'}", "tcp://h:2"},
		"v6":         {"- {id: w, engine: vllm, model: m, events: '" + v6 + "', ranks: 2}", ""},
		"topics":     {"- {id: a, engine: vllm, model: m, events: 'tcp://*:1', topic: a}\n  - {id: b, engine: vllm, model: m, events: 'tcp://*:1', topic: b}", ""},
		"explicit":   {"- {id: w, engine: vllm, model: m, rank: 0, events: 'tcp://*:1'}\n  - {id: w, engine: vllm, model: m, rank: 1, events: 'tcp://*:9'}", ""},
		"listen":     {"- {id: w, engine: vllm, model: m, events: 'tcp://*:9470'}", "the server's own port"},
		"no model":   {"- {id: w, engine: vllm}", "model is missing"},
		"two models": {"- {id: w, engine: vllm, model: a}\n  - {id: w, engine: vllm, model: b, rank: 1}", `"a" and "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, err := resolve("--config", writeFile(t, "c.yaml", "workers:\n  "+c.text+"\n"))
			if c.want == "" {
				if err != nil || len(o.workers) == 0 {
					t.Fatal(err)
				}
				return
			}
			var usage usageError
			if !errors.As(err, &usage) {
				t.Fatalf("got %v", err)
			}
			wants(t, err.Error(), c.want)
		})
	}
	o, _, err := resolve("--source", "id=w,engine=vllm,model=m,events="+v6)
	if err != nil || o.workers[0].Sources[0].Events != v6 {
		t.Errorf("IPv6: %v", err)
	}
}

const exampleFile = "../../examples/kvscout.yaml"

func TestExampleFile(t *testing.T) {
	o, flags, err := resolve("--config", exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" || f.Name == "source" {
			return
		}
		if !strings.Contains(string(text), "\n"+fileKey(f.Name)+": ") && !strings.Contains(string(text), "\n# "+fileKey(f.Name)+": ") {
			t.Errorf("%s is not shown", fileKey(f.Name))
		}
		if f.Changed && f.Value.String() != f.DefValue && f.Name != "renderer" {
			t.Errorf("%s is %s, the default is %s", f.Name, f.Value, f.DefValue)
		}
	})
	for key := range new(workerEntry).fields() {
		if !strings.Contains(string(text), key+":") {
			t.Errorf("%s of a worker is not shown", key)
		}
	}
	vllm := events.Source{
		Worker: "10.0.0.7:8000", Engine: events.EngineVLLM, Version: "0.32.0", Model: "Qwen/Qwen3-8B", BlockSize: 16,
		Events: "tcp://10.0.0.7:5557", Replay: "tcp://10.0.0.7:5657", Topic: "kv", SpeculativeEAGLE: true, ReuseReports: true,
	}
	second := vllm
	second.Rank, second.Events, second.Replay = 1, "tcp://10.0.0.7:5558", "tcp://10.0.0.7:5658"
	want := []discover.Worker{
		{
			ID: "10.0.0.7:8000", Model: "Qwen/Qwen3-8B", Aliases: []string{"qwen3"}, Adapters: []string{"support-lora"}, Role: "prefill", Fingerprint: "9f86d0",
			Labels: map[string]string{"zone": "a", "gpu": "h100"}, Sources: []events.Source{vllm, second},
		},
		{
			ID: "10.0.0.8:30000", Model: "Qwen/Qwen3-8B", Role: "decode", Sources: []events.Source{{
				Worker: "10.0.0.8:30000", Engine: events.EngineSGLang, Model: "Qwen/Qwen3-8B", Events: "tcp://10.0.0.8:5557",
				Replay: "tcp://10.0.0.8:5657", PairKeys: true, HashFormat: "dynamo", Unpublished: []events.Hidden{events.HiddenWindow},
			}},
		},
		{ID: "10.0.0.11:8000", URL: "http://10.0.0.11:8000", Sources: []events.Source{{Worker: "10.0.0.11:8000"}}},
		{ID: "w3", Model: "other", Sources: []events.Source{
			{Worker: "w3", Engine: events.EngineVLLM, Model: "other", Events: "tcp://10.0.0.9:6000"},
			{Worker: "w3", Rank: 1, Engine: events.EngineVLLM, Model: "other", Events: "tcp://10.0.0.9:6100"},
		}},
		{ID: "w4", Model: "other", Sources: []events.Source{
			{Worker: "w4", Engine: events.EngineVLLM, Model: "other", Events: "tcp://10.0.0.10:5557", Replay: "tcp://10.0.0.10:5558"},
		}},
	}
	if diff := cmp.Diff(want, o.workers); diff != "" {
		t.Error(diff)
	}
}
