package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// commands lists every command of ours.
func commands(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		out = append(out, commands(c)...)
	}
	return out
}

// The flags that scripts outside rely on.
var contract = map[string][]string{
	"serve": {"listen", "config", "source", "renderer", "renderer-protocol", "renderer-timeout", "renderer-insecure-token", "log-level", "log-format",
		"weight-device", "weight-host", "weight-disk", "weight-shared", "weight-unknown", "stale-after", "keep-on-gap",
		"max-prompt-tokens", "shutdown-grace", "max-orphan-blocks", "max-payload-bytes", "renderer-concurrency",
		"renderer-health-interval", "render-model", "render-reload-interval", "render-cache-bytes", "render-cache-ttl",
		"tenant-header", "strip-field", "trust-caller-tokens", "fingerprint-mismatch", "snapshot", "snapshot-every", "ready-grace",
		"kubernetes-pods", "kubernetes-endpoint-slices", "kubernetes-namespace", "kubernetes-port", "kubernetes-worker-id", "kubeconfig",
		"max-index-bytes", "tls-cert", "tls-key", "tls-client-ca", "callers", "cors-origin", "max-calls", "max-wait", "max-calls-per-caller",
		"max-rate-per-caller", "max-connections", "admin-listen", "mutex-profile-fraction", "block-profile-rate", "otlp-endpoint", "otlp-protocol", "trace-ratio"},
	"score": {"server", "model", "body", "path", "tokens", "prompt", "hashes", "block-size", "adapter", "cache-salt",
		"cache-salt-file", "extra-key", "candidate", "role", "protocol", "json", "header", "prompt-index", "return-tokens", "weights",
		"max-workers", "explain", "remember"},
	"report":         {},
	"report routed":  {"server", "worker", "rank", "score-id", "ttl", "json"},
	"report outcome": {"server", "worker", "rank", "score-id", "prompt-tokens", "cached-tokens", "json"},
	"dump":           {"server", "worker", "rank"},
	"clear":          {"server", "worker", "rank", "namespace", "model", "cache-salt", "cache-salt-file", "adapter", "json"},
	"workers":        {"server", "json"},
	"workers add":    {"server", "source", "alias", "label", "role"},
	"workers remove": {"server", "rank", "json"},
	"workers reset":  {"server", "rank", "json"},
	"top":            {"server", "interval", "once", "token-file", "ca"},
	"stats":          {"server", "watch", "json", "token-file", "insecure-token", "ca", "cert", "key"},
	"inspect":        {"server", "worker", "rank", "tokens", "json"},
	"record":         {"source", "output", "for", "max-bytes"},
	"record convert": {"output"},
	"replay":         {"server", "model", "speed"},
	"verify":         {"json", "verbose", "render", "profile", "tokenizer", "served-model", "max-model-len"},
	"render": {"profile", "tokenizer", "body", "path", "served-model", "max-model-len", "check", "json", "renderer",
		"renderer-protocol"},
	"simulate": {"engines", "form", "model", "block-size", "blocks", "rate", "for", "seed", "base-port", "register", "score",
		"json", "token-file", "ca"},
	"snapshot":       {},
	"snapshot info":  {"json"},
	"bench":          {},
	"bench pinned":   {"json", "reps", "scale", "own-hashes"},
	"bench mooncake": {"json", "reps", "cap", "copies", "trace"},
	"bench wide":     {"json", "reps", "own-hashes"},
	"bench beside":   {"json", "reps", "scale", "own-hashes"},
	"bench score":    {"server", "tokens", "concurrency", "protocol", "json"},
	"bench gc":       {"json", "reps", "scale", "own-hashes"},
	"version":        {},
}

func TestHelpTeaches(t *testing.T) {
	found := make(map[string]bool)
	for _, cmd := range commands(newRoot()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "kvscout ")
		if cmd.Name() == "help" || cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" || cmd.CommandPath() == "kvscout" {
			continue
		}
		found[name] = true
		help := ok(t, append(strings.Fields(name), "--help")...)
		wants(t, help, "Usage:", "Examples:\n  ")
		for _, flag := range contract[name] {
			wants(t, help, "--"+flag)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			wants(t, help, " --"+f.Name)
			zero := f.DefValue == "" || f.DefValue == "0" || f.DefValue == "0s" || f.DefValue == "[]"
			told := strings.Contains(f.Usage, "default") || strings.Contains(f.Usage, "0 is ") || strings.Contains(f.Usage, "at least one") || strings.Contains(f.Usage, "one that exists")
			if zero && !told {
				t.Errorf("%s --%s does not tell its default: %q", name, f.Name, f.Usage)
			}
		})
	}
	for name := range contract {
		if !found[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}

// What the documents tell to type can be typed.
func TestDocumentsUseFlagsThatExist(t *testing.T) {
	found := 0
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, name := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\\\n", " ")
		for _, call := range regexp.MustCompile(`(?m)(?:^|[\x60 /])kvscout ([a-z]+[^\x60\n|&>]*)`).FindAllStringSubmatch(text, -1) {
			words := strings.Fields(call[1])
			cmd, _, err := newRoot().Find(words[:min(2, len(words))])
			if err != nil || !cmd.HasParent() {
				continue // a sentence about kvscout
			}
			found++
			for _, w := range words {
				flag, ok := strings.CutPrefix(w, "--")
				if flag, _, _ = strings.Cut(flag, "="); ok && cmd.Flags().Lookup(flag) == nil && flag != "help" {
					t.Errorf("%s: %s has no flag --%s", name, cmd.CommandPath(), flag)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d calls were found, the documents have more", found)
	}
}

// docs/answers.md explains every reason that an answer may give for not being exact.
func TestDocumentsExplainEveryReason(t *testing.T) {
	data, err := os.ReadFile("../../docs/answers.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range kvscoutv1.BoundReason_value {
		if value != 0 {
			wants(t, string(data), "`"+strings.TrimPrefix(name, "BOUND_REASON_")+"`")
		}
	}
}

func TestCompletion(t *testing.T) {
	wants(t, ok(t, "completion", "bash"), "kvscout")
}

func TestVersion(t *testing.T) {
	wants(t, ok(t, "version"), "kvscout ", "go1.")
	wants(t, ok(t, "--version"), "kvscout ")
}

func TestBareCommandShowsHelp(t *testing.T) {
	help := ok(t)
	wants(t, help, "Ask and steer a running one:\n", "\nFlags:\n")
	for _, cmd := range newRoot().Commands() {
		wants(t, help, "\n  "+cmd.Name()+" ")
	}
}

func TestMisuseExitsWith2(t *testing.T) {
	ids := writeFile(t, "ids.json", "[1]")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"scoer"}, `unknown command "scoer", did you mean "score"?`},
		{[]string{"serve", "--lisen", "x"}, "unknown flag: --lisen"},
		{[]string{"serve", "now"}, `takes no argument, got "now"`},
		{[]string{"serve", "--stale-after", "soon"}, "--stale-after"},
		{[]string{"serve", "--max-index-bytes", "1000"}, "max-index-bytes 1000 is neither 0 nor at least 16777216"},
		{[]string{"serve", "--max-index-bytes", "-1"}, "max-index-bytes -1 is neither"},
		{[]string{"serve", "--stale-after", "-1s"}, "stale-after is not positive"},
		{[]string{"serve", "--weight-host", "1.5"}, "bad tier weight: host is 1.5"},
		{[]string{"serve", "--log-format", "xml"}, `log-format "xml" is not text or json`},
		{[]string{"serve", "--log-level", "loud"}, `log-level "loud" is not debug, info, warn or error`},
		{[]string{"serve", "--renderer", "ftp://x"}, "scheme"},
		{[]string{"serve", "--renderer", "http://x", "--renderer-token-file", writeFile(t, "token", "t")}, "renderer-insecure-token"},
		{[]string{"serve", "--renderer", "http://x", "--renderer-protocol", "tea"}, `"tea" is not known`},
		{[]string{"score"}, "exactly one of"},
		{[]string{"score", "--tokens", ids, "--prompt", "x"}, "not 2 of them"},
		{[]string{"score", "--hashes", ids}, "hashes needs block-size"},
		{[]string{"score", "--tokens", ids, "--block-size", "16"}, "belong to hashes"},
		{[]string{"score", "--tokens", ids, "--protocol", "soap"}, `protocol "soap"`},
		{[]string{"score", "--tokens", ids, "--server", "localhost:1"}, "want http://HOST:PORT"},
		{[]string{"score", "--tokens", ids, "--role", "king"}, `role "king"`},
		{[]string{"score", "--tokens", ids, "--cache-salt", "s1", "--cache-salt-file", ids}, "both given"},
		{[]string{"workers", "gone"}, "takes no argument"},
		{[]string{"workers", "add"}, "at least one --source"},
		{[]string{"workers", "add", "--source", "id=w,engine=vllm", "--label", "x"}, `label "x" is not KEY=VALUE`},
		{[]string{"workers", "add", "--source", "id=w,engine=vllm,rank=1"}, "describe rank 0"},
		{[]string{"workers", "remove"}, "kvscout: workers remove needs one worker id"},
		{[]string{"workers", "remove", "w", "--rank", "-5"}, "rank -5"},
		{[]string{"inspect", "--worker", "w", "--rank", "-5"}, "rank -5"},
		{[]string{"inspect", "--tokens", ids, "--rank", "1"}, "rank belongs to worker"},
		{[]string{"stats", "--count", "3"}, "count belongs to watch"},
		{[]string{"stats", "--watch=soon"}, "--watch"},
		{[]string{"stats", "--watch", "soon"}, "watch: time"},
		{[]string{"inspect"}, "exactly one of --worker"},
		{[]string{"record"}, "at least one --source"},
		{[]string{"record", "--source", "id=w,engine=vllm", "-o", "x"}, "events is missing"},
		{[]string{"record", "convert"}, "needs one recording"},
		{[]string{"replay"}, "at least one recording"},
		{[]string{"replay", "--speed", "0", "x"}, `speed "0"`},
		{[]string{"verify"}, "at least one recording"},
		{[]string{"simulate", "--form", "gpt"}, `form "gpt"`},
		{[]string{"simulate", "--engines", "0"}, "engines 0"},
		{[]string{"simulate", "--base-port", "65535"}, "base-port 65535"},
		{[]string{"simulate", "--blocks", "0"}, "must be positive"},
		{[]string{"simulate", "--block-size", "0"}, "must be positive"},
		{[]string{"serve", "--render-model", "tokenizer=d"}, "model is missing"},
		{[]string{"serve", "--render-model", "model=m"}, "neither tokenizer nor url"},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,url=http://x"}, "both given"},
		{[]string{"serve", "--render-model", "model=m,url=http://x,profile=vllm"}, "belong to tokenizer"},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,protocol=vllm-render"}, "protocol belongs to url"},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,tokenizer=e"}, "tokenizer is given twice"},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,max-model-len=0"}, "max-model-len"},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,tool-parser=x"}, "tool-parser"},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,colour=red"}, `unknown key "colour"`},
		{[]string{"serve", "--render-model", "model=m,tokenizer=d,profile=tgi"}, `profile "tgi" is not one of`},
		{[]string{"serve", "--render-model", "model=m,url=http://x", "--render-model", "model=m,url=http://y"}, "has one already"},
		{[]string{"serve", "--render-cache-bytes", "-1"}, "is negative"},
		{[]string{"serve", "--fingerprint-mismatch", "shrug"}, `"shrug" is not refuse or flag`},
		{[]string{"serve", "--tenant-header", "x tenant"}, "no name of a header"},
		{[]string{"serve", "--strip-field", "messages"}, "must stay"},
		{[]string{"score", "--tokens", ids, "--header", "a=b"}, "header belongs to body"},
		{[]string{"score", "--body", ids, "--header", "secret"}, "header is not NAME=VALUE"},
		{[]string{"render"}, "exactly one of --body and --check"},
		{[]string{"render", "--body", ids}, "exactly one of --tokenizer and --renderer"},
		{[]string{"render", "--body", ids, "--tokenizer", "d", "--profile", "tgi"}, `profile "tgi"`},
		{[]string{"render", "--body", ids, "--tokenizer", "d", "--template-kwargs", ids}, "is no JSON object"},
		{[]string{"verify", "--tokenizer", "d", "x"}, "belong to render"},
	} {
		r := run(t, c.args...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("kvscout %q exits with %d, prints %q", c.args, r.code, r.out)
		}
		wants(t, r.err, c.want, "--help")
	}
}

func TestFailureExitsWith1(t *testing.T) {
	ids := writeFile(t, "ids.json", "[1]")
	bad := writeFile(t, "bad.json", `[1, "secret"]`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"score", "--tokens", ids, "--server", "http://127.0.0.1:1"}, "is the server running?"},
		{[]string{"score", "--tokens", ids, "--timeout", "1ns"}, "--timeout gives it longer"},
		{[]string{"score", "--tokens", "-"}, "standard input is not a JSON list"},
		{[]string{"score", "--tokens", ids + ".none"}, "no such file"},
		{[]string{"score", "--tokens", bad}, "is not a JSON list of token ids"},
		{[]string{"verify", ids + ".none"}, "no such file"},
		{[]string{"verify", t.TempDir()}, "no recordings"},
		{[]string{"replay", ids + ".none"}, "no such file"},
	} {
		r := run(t, c.args...)
		if r.code != exitFailed || r.out != "" {
			t.Errorf("kvscout %q exits with %d, prints %q", c.args, r.code, r.out)
		}
		wants(t, r.err, c.want)
		if strings.Contains(r.err, "secret") {
			t.Errorf("the error shows what was in the file: %q", r.err)
		}
	}
}
