package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kvscout/kvscout/test/testlog"
	"github.com/kvscout/kvscout/test/testport"
)

// Secrets that a server meets. Each is told from everything else that it could write.
const (
	markSalt      = "SALTMARK7f3a9cQx"
	markExtra     = "EXTRAMARK51bd0eWv"
	markTenant    = "TENANTMARK20c7fLr"
	markPrompt    = "PROMPTMARK8a41dHs"
	markHeader    = "HEADERMARK63eeaPk" // an API key in a client's header
	markBody      = "BODYMARK9d92bZt"   // and in its body
	markPassword  = "PASSMARK44f10Jn"   // in a URL
	markScore     = "scoretokenmark31a8Ug"
	markOperate   = "operatetokenmark96c2Ye"
	markWrong     = "wrongtokenmark70b5Co"
	markRenderer  = "renderertokenmark1e6dAb"
	markToken     = 1912837460 // the first of the token ids
	markTokens    = 12
	renderedToken = 1823746510 // the first of those that the renderer answers
)

func markIDs(first uint32) []uint32 { return span(first, first+markTokens-1) }

// marks are all secrets in the forms in which they could be written.
func marks() map[string]string {
	out := make(map[string]string)
	add := func(what string, raw []byte) {
		out[hex.EncodeToString(raw)] = what + " in hexadecimal"
		for shift := range 3 { // where it begins within three bytes decides how base64 writes it
			padded := append(bytes.Repeat([]byte{0}, shift), raw...)
			whole := base64.RawStdEncoding.EncodeToString(padded)
			from, to := (shift*8+5)/6, len(padded)*8/6
			out[whole[from:to]] = what + " in base64"
			out[strings.NewReplacer("+", "-", "/", "_").Replace(whole[from:to])] = what + " in base64"
		}
	}
	for _, s := range []string{markSalt, markExtra, markTenant, markPrompt, markHeader, markBody, markPassword, markScore, markOperate, markWrong, markRenderer} {
		out[s] = s
		add(s, []byte(s))
	}
	for _, first := range []uint32{markToken, renderedToken} {
		for _, id := range markIDs(first) {
			what := fmt.Sprintf("token %d", id)
			out[strconv.Itoa(int(id))] = what
			out[fmt.Sprintf("%x", id)] = what + " in hexadecimal"
		}
		var packed []byte
		for _, id := range markIDs(first)[:2] {
			packed = binary.LittleEndian.AppendUint32(packed, id)
		}
		add(fmt.Sprintf("tokens from %d", first), packed)
	}
	return out
}

// numbers are three integers in a row, as a list of token ids would have them. Times, addresses and versions are none.
var numbers = regexp.MustCompile(`\b\d+(, ?| )\d+(, ?| )\d+\b`)

// leaks are the secrets that a text has.
func leaks(text string) []string {
	var out []string
	lower := strings.ToLower(text)
	for mark, what := range marks() {
		if strings.Contains(text, mark) || strings.Contains(lower, strings.ToLower(mark)) {
			at := max(0, strings.Index(lower, strings.ToLower(mark))-200)
			out = append(out, fmt.Sprintf("%s: %.400q", what, text[at:]))
		}
	}
	slices.Sort(out)
	return out
}

// The scan sees what it is meant to see.
func TestSecrets_ScanFindsThem(t *testing.T) {
	t.Parallel()
	packed := packed(append([]uint32{7}, markIDs(markToken)...))
	for name, text := range map[string]string{
		"plain": "error: " + markSalt, "upper": strings.ToUpper(markWrong), "token": "id=1912837461", "packed": packed,
		"hex": hex.EncodeToString([]byte("x" + markPrompt)), "hex token": "72039555",
		"base64 0": base64.StdEncoding.EncodeToString([]byte(markExtra + "tail")), "base64 1": base64.StdEncoding.EncodeToString([]byte("a" + markExtra)),
		"base64 2": base64.URLEncoding.EncodeToString([]byte("ab" + markExtra)),
	} {
		if len(leaks(text)) == 0 {
			t.Errorf("%s is not found in %q", name, text)
		}
	}
	if found := leaks("level=INFO msg=serving 127.0.0.1:1912 version 191283746"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// Every method is sent secrets: one that is new has to be added to the requests.
func TestSecrets_EveryMethod(t *testing.T) {
	t.Parallel()
	sent := make(map[string]bool)
	for _, r := range secretRequests(t, "http://127.0.0.1:1") {
		sent[r.method] = true
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("kvscout.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				if name := string(service.FullName()) + "/" + string(service.Methods().Get(j).Name()); !sent[name] {
					t.Errorf("no request for %s", name)
				}
			}
		}
		return true
	})
	if len(sent) < 16 {
		t.Errorf("only %d methods", len(sent))
	}
}

// Case 119 and the promise of docs/security.md: a server that logs all it can, and is sent secrets in requests good and bad
// over every protocol, in events and by recordings, has none of them in its log, its statistics, its metrics, its traces or its errors.
func TestSecrets_StayInside(t *testing.T) {
	t.Parallel()
	s := startSecret(t)
	sent := s.sendAll(secretRequests(t, leakyWorker(t)))
	s.breakCallers()
	pages := map[string]string{"replay": s.replay()}
	operate := func(method string) string {
		return exchange(t, s.clients[0], s.base, secretRequest{method: method, body: obj{}}, 0, "Bearer "+markOperate)
	}
	pages["GetStats"], pages["ListWorkers"] = operate(statsMethod), operate(listMethod)
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		pages[path] = s.page(path)
	}
	_ = s.cmd.Process.Signal(os.Interrupt) // it writes its snapshot, and says so
	<-s.ended
	pages["log"], pages["traces"] = s.out.String(), s.traced.String()
	for name, text := range pages {
		for _, leak := range leaks(text) {
			t.Errorf("%s has %s", name, leak)
		}
	}
	if found := numbers.FindString(pages["log"]); found != "" {
		t.Errorf("the log has numbers in a row: %s", found)
	}
	if i := strings.Index(pages["log"], "anic"); i >= 0 {
		t.Errorf("the server wrote of a panic: %.6000s", pages["log"][max(0, i-200):])
	}
	// The test would prove nothing if what it sends were not dealt with.
	for name, wants := range map[string][]string{
		"log":      {"msg=call", "BAD_TOKEN", "ROLE_MISSING", "BAD_BODY", "RENDERER_DOWN"},
		"GetStats": {`"s0"`, "bad_payload", "NO_CREDENTIAL", "SALT_MISMATCH"},
		"/metrics": {"kvscout_", "NO_CREDENTIAL"},
		"traces":   {"kvscout.v1.ScoreService/Score", "BAD_BODY"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[name], want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
	t.Logf("%d requests, %d bytes of log", sent, len(pages["log"]))
}

// secretServer is a server that logs and traces all it can.
type secretServer struct {
	t           *testing.T
	dir         string
	base, admin string // URLs
	cmd         *exec.Cmd
	ended       chan struct{} // closed when it has ended
	out, traced *testlog.Buffer
	clients     []*http.Client // of HTTP/1.1 and HTTP/2
}

// file is a file with a secret.
func (s *secretServer) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func startSecret(t *testing.T) *secretServer {
	t.Helper()
	first := testport.Free(t, 2)
	listen, admin := "127.0.0.1:"+strconv.Itoa(first), "127.0.0.1:"+strconv.Itoa(first+1)
	s := &secretServer{t: t, dir: t.TempDir(), base: "http://" + listen, admin: "http://" + admin, ended: make(chan struct{}), out: new(testlog.Buffer)}
	traces, traced := collector(t)
	s.traced = traced
	callers := s.file("callers", "score gateway token:"+markScore+"\noperate admin token:"+markOperate+"\n")
	s.cmd = exec.Command(program, "serve", "--listen", listen, "--admin-listen", admin, "--log-level", "debug", "--callers", callers,
		"--renderer", leakyRenderer(t), "--renderer-token-file", s.file("renderer", markRenderer), "--worker-network", "127.0.0.0/8",
		"--otlp-endpoint", traces, "--trace-ratio", "1", "--snapshot", filepath.Join(s.dir, "snapshot"), "--config-poll", "10ms",
		"--source", "id=trt,engine=trtllm,model=trt,events=http://127.0.0.1:1/kv_cache_events")
	s.cmd.Env = clearedEnv()
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(s.ended); _ = s.cmd.Wait() }() // ends with the process, which the cleanup kills and waits for
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.ended })
	eventually(t, "the server serves", func() bool { return strings.Contains(s.out.String(), "kvscout serves on") })
	for _, two := range []bool{false, true} {
		p := new(http.Protocols)
		p.SetHTTP1(!two)
		p.SetUnencryptedHTTP2(two)
		c := &http.Client{Timeout: patience, Transport: &http.Transport{Protocols: p}}
		t.Cleanup(c.CloseIdleConnections)
		s.clients = append(s.clients, c)
	}
	return s
}

// sendAll sends every request in each form as each caller, and looks at what is answered.
func (s *secretServer) sendAll(requests []secretRequest) (sent int) {
	s.t.Helper()
	for form, f := range secretForms {
		for i, in := range requests {
			c := s.clients[0]
			if m := methodNamed(in.method); f.http2 || m != nil && m.IsStreamingClient() {
				c = s.clients[1]
			}
			for _, token := range []string{"", markWrong, markScore, markOperate} {
				authorization := "Bearer " + token
				if token == "" {
					authorization = ""
				}
				answer := exchange(s.t, c, s.base, in, form, authorization)
				sent++
				if in.quotes {
					continue
				}
				for _, leak := range leaks(answer) {
					s.t.Errorf("%s, request %d of %s with %.5q is answered with %s", f.name, i, in.method, token, leak)
				}
			}
		}
	}
	return sent
}

// breakCallers makes the file of callers a wrong one, with tokens where they do not belong.
func (s *secretServer) breakCallers() {
	s.t.Helper()
	s.file("callers", markOperate+" "+markScore+" "+markWrong+"\nscore x token:"+markScore+" "+markWrong+"\n")
	eventually(s.t, "the broken file is told", func() bool { return strings.Contains(s.out.String(), "file is wrong") })
}

// replay plays a recording, whose token ids would be seen as numbers, and returns what the command writes.
func (s *secretServer) replay() string {
	s.t.Helper()
	cmd := exec.Command(program, "replay", "--server", s.base, "--token-file", s.file("operate", markOperate), "--speed", "max", "--model", "r",
		filepath.Join(root, "test", "testdata", "recordings", "sglang-0.5.19-radix_p16_salt.kvrec"))
	cmd.Env = clearedEnv()
	told, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("replay: %v\n%s", err, told)
	}
	return string(told)
}

// page is one of the operators' listener.
func (s *secretServer) page(path string) string {
	s.t.Helper()
	resp, err := s.clients[0].Get(s.admin + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
