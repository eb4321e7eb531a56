//go:build kubernetes

package kubernetes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events/simulate"
)

// kvscout is the command, built from this tree and running with what deploy/kubernetes gives it.
type kvscout struct {
	*testing.T
	program, address, log string
	as                    []string // flags of every call
}

// startKvscout serves with a kubeconfig of the ServiceAccount and the file of the ConfigMap.
func startKvscout(t *testing.T, a *api) *kvscout {
	t.Helper()
	return startKvscoutBy(t, a, a.settings())
}

func startKvscoutBy(t *testing.T, a *api, settings string) *kvscout {
	t.Helper()
	dir := t.TempDir()
	k := &kvscout{T: t, program: filepath.Join(dir, "kvscout"), log: filepath.Join(dir, "log")}
	build := exec.Command("go", "build", "-o", k.program, "../../cmd/kvscout")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	admin, err := os.ReadFile(a.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"kubeconfig": strings.ReplaceAll(string(admin), a.Token, a.token("kvscout")), "kvscout.yaml": settings,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(k.program, "serve", "--config", filepath.Join(dir, "kvscout.yaml"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--kubeconfig", filepath.Join(dir, "kubeconfig"), "--kubernetes-namespace", "default", "--health-every", "0", "--worker-refresh", "200ms")
	log, err := os.Create(k.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("kvscout ended with %v\n%s", err, k.logged())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v\n%s", err, k.logged())
	}
	k.address = strings.TrimSpace(line[strings.Index(line, "http"):])
	return k
}

func (k *kvscout) logged() string {
	text, _ := os.ReadFile(k.log)
	return string(text)
}

// run runs a command against the server and returns its output, "" if it fails.
func (k *kvscout) run(args ...string) string {
	out, err := exec.Command(k.program, append(append(args, "--server", k.address), k.as...)...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// score is the one worker's, -1 while there is none.
func (k *kvscout) score(tokens string) float64 {
	k.Helper()
	var answer struct {
		Workers []struct{ Score float64 }
	}
	out := k.run("score", "--model", "m", "--tokens", tokens, "--json")
	if out == "" || json.Unmarshal([]byte(out), &answer) != nil || len(answer.Workers) != 1 {
		return -1
	}
	return answer.Workers[0].Score
}

func (k *kvscout) await(what string, done func() bool) {
	k.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.Fatalf("waited in vain for %s; log:\n%s\n%s", what, k.logged(), k.run("stats", "--json"))
		}
	}
}

// A pod that says nothing but where it serves is found under the shipped manifests, asked, listened to and scored; it loses
// credit while it is not ready, and goes with its pod.
func TestServe(t *testing.T) {
	a := startAPI(t)
	a.apply()
	engine := startEngine(t)
	var prompt []uint32
	for i := range uint32(33) {
		prompt = append(prompt, i)
	}
	tokens := served(t, engine, prompt)
	k := startKvscout(t, a)
	k.await("a right that suffices", func() bool { return strings.Contains(k.run("stats"), "kubernetes-pods") })

	p := pod("engine", nil)
	p.Labels = map[string]string{"kvscout.io/worker": "true", "llm-d.ai/role": "decode"}
	p.Spec.Containers[0].Ports[0].ContainerPort = servingPort(t, engine)
	a.create(p)
	a.running("engine", "127.0.0.1", true)
	k.await("credit", func() bool { return k.score(tokens) > 0.9 })
	if text := k.run("workers"); !strings.Contains(text, "decode") || !strings.Contains(text, "live") {
		t.Errorf("workers:\n%s", text)
	}
	a.running("engine", "127.0.0.1", false)
	k.await("no credit", func() bool { return k.score(tokens) == 0 && strings.Contains(k.run("workers"), "pod is not ready") })
	a.running("engine", "127.0.0.1", true)
	k.await("credit again", func() bool { return k.score(tokens) > 0.9 })
	a.remove("engine")
	k.await("no workers", func() bool { return strings.Contains(k.run("workers"), "no workers") })
}

// startEngine is an engine that publishes on free ports of this machine.
func startEngine(t *testing.T) *simulate.Engine {
	t.Helper()
	engine, err := simulate.New(simulate.Config{Worker: "any", Model: "m", Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// served lets an engine serve a prompt, and returns the file with the prompt's ids.
func served(t *testing.T, engine *simulate.Engine, prompt []uint32) string {
	t.Helper()
	if _, err := engine.Serve(simulate.Request{Tokens: prompt}); err != nil {
		t.Fatal(err)
	}
	ids, _ := json.Marshal(prompt)
	name := filepath.Join(t.TempDir(), "ids.json")
	write(t, name, ids)
	return name
}

// servingPort is the HTTP port of a vLLM that tells where an engine's events are.
func servingPort(t *testing.T, e *simulate.Engine) int32 {
	t.Helper()
	wild := func(endpoint string) string { return strings.Replace(endpoint, "127.0.0.1", "*", 1) }
	answers := map[string]any{
		"/kv_event_sources": []any{map[string]any{
			"data_parallel_rank": 0, "endpoint": wild(e.Source().Events), "replay_endpoint": wild(e.Source().Replay), "topic": e.Source().Topic,
		}},
		"/v1/models": map[string]any{"data": []any{map[string]any{"id": "m", "parent": nil}}},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			_ = json.NewEncoder(w).Encode(answer)
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return int32(s.Listener.Addr().(*net.TCPAddr).Port)
}

// A pod goes on from the snapshot once it is found again: a server that starts anew asks its engine for what it has missed.
func TestServe_SnapshotOfAPod(t *testing.T) {
	a := startAPI(t)
	a.apply()
	engine := startEngine(t)
	p := pod("engine", nil)
	p.Labels = map[string]string{"kvscout.io/worker": "true"}
	p.Spec.Containers[0].Ports[0].ContainerPort = servingPort(t, engine)
	a.create(p)
	a.running("engine", "127.0.0.1", true)
	settings := a.settings() + "\nsnapshot: " + filepath.Join(t.TempDir(), "index.snapshot") + "\n"
	for life := range 2 {
		prompt := make([]uint32, 33)
		for i := range prompt {
			prompt[i] = uint32(100*life + i)
		}
		tokens := served(t, engine, prompt)
		t.Run(fmt.Sprint("life ", life), func(t *testing.T) {
			k := startKvscoutBy(t, a, settings)
			k.await("credit", func() bool { return k.score(tokens) > 0.9 })
			text := k.run("stats")
			if life == 0 {
				return
			}
			if !strings.Contains(text, "snapshot: restored") || !strings.Contains(text, " 1 sources went on, dropped: -") || strings.Contains(text, "wait for") {
				t.Errorf("stats:\n%s", text)
			}
		})
	}
}
