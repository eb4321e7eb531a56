package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
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

// secretRequest is a request with secrets, good or bad.
type secretRequest struct {
	method string
	body   any  // an obj, or []byte for what is no JSON
	quotes bool // the answer may quote what was sent: a renderer said so, or it is what was asked for
}

// eventsOf is a batch of msgpack with secrets in it.
func eventsOf(t testing.TB, events ...any) []byte {
	t.Helper()
	b, err := msgpack.Marshal([]any{1.5, events})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// secretRequests are requests of every kind, in order.
func secretRequests(t testing.TB, renderer, workerURL string) []secretRequest {
	t.Helper()
	ids := markIDs(markToken)
	stored := func(hashes []any, parent any, tokens any, more ...any) []any {
		return append([]any{"BlockStored", hashes, parent, tokens, 4, nil, "GPU"}, more...)
	}
	register := func(more obj) secretRequest {
		w := obj{"workerId": "s0", "engine": "vllm", "model": "m", "blockSize": 4}
		for k, v := range more {
			w[k] = v
		}
		return secretRequest{method: registerMethod, body: obj{"worker": w}}
	}
	n := 0
	publish := func(payload []byte) secretRequest {
		n++
		return secretRequest{method: "kvscout.v1.IndexService/Publish", body: obj{"workerId": "s0",
			"batches": []obj{{"sequence": n - 1, "topic": "kv@s0", "payload": payload}}}}
	}
	score := func(more obj) secretRequest {
		in := obj{"model": "m", "cacheSalt": markSalt, "extraKey": markExtra}
		for k, v := range more {
			in[k] = v
		}
		return secretRequest{method: scoreMethod, body: in}
	}
	http := func(path, body string) obj {
		return obj{"httpRequest": obj{"path": path, "body": []byte(body),
			"headers": obj{"X-Tenant-Id": markTenant, "Authorization": "Bearer " + markHeader, "X-Api-Key": markHeader}}}
	}
	chat := `{"model":"m","api_key":"` + markBody + `","messages":[{"role":"user","content":"` + markPrompt + `"}]`
	quoting := func(r secretRequest) secretRequest { r.quotes = true; return r }
	unsalted := obj{"cacheSalt": "", "extraKey": ""}
	with := func(a, b obj) obj {
		out := obj{}
		for _, m := range []obj{a, b} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	prompt := obj{"model": "m", "cacheSalt": markSalt, "extraKey": markExtra, "tokens": obj{"ids": ids}}
	report := func(method string, more obj) secretRequest {
		return secretRequest{method: "kvscout.v1.ScoreService/" + method, body: with(obj{"workerId": "s0"}, more)}
	}
	bad := []byte(`{"cacheSalt":"` + markSalt + `","tokens":{"ids":[`)
	return []secretRequest{
		register(nil),
		register(obj{"workerId": "w1", "url": "http://user:" + markPassword + "@127.0.0.1:1"}),
		register(obj{"workerId": "w1", "url": workerURL + "?api_key=" + markPassword}),
		register(obj{"workerId": "w1", "eventEndpoint": "tcp://user:" + markPassword + "@127.0.0.1:1"}),
		register(obj{"workerId": "w1", "eventEndpoint": "http://user:" + markPassword + "@127.0.0.1:1/x", "engine": "trtllm"}),
		register(obj{"workerId": "w1", "replayEndpoint": "ftp://user:" + markPassword + "@h:1?key=" + markPassword}),
		register(obj{"workerId": "w2", "url": workerURL}),

		publish(eventsOf(t, stored([]any{1, 2}, nil, ids[:8], nil, []any{[]any{markSalt}, nil}))),
		publish(eventsOf(t, stored([]any{3}, 2, ids[8:], nil, []any{[]any{markSalt}}), stored([]any{4}, 3, ids[:3]))),
		publish(eventsOf(t, stored([]any{markSalt}, nil, ids[:4]), stored([]any{9}, markExtra, ids[:4]))),
		publish(eventsOf(t, []any{markSalt, ids}, obj{"type": markSalt, "token_ids": ids}, markPrompt, ids)),
		publish(eventsOf(t, stored([]any{5}, nil, markPrompt), stored([]any{6}, nil, []any{markPrompt, ids[0]}))),
		publish(eventsOf(t, append(stored([]any{7}, nil, ids[:4]), nil, markExtra))),
		publish([]byte(markPrompt)), publish(append([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, markSalt...)),
		publish(eventsOf(t, stored([]any{8}, nil, ids[:4]))[:40]),

		score(obj{"tokens": obj{"ids": ids}}), score(obj{"tokens": obj{"packed": packed(ids)}, "explain": true, "remember": true}),
		score(with(unsalted, obj{"tokens": obj{"ids": ids}})),
		score(obj{"tokens": obj{"ids": []int64{-markToken, 1912837466 << 20}}}),
		score(obj{"tokens": obj{"ids": ids, "packed": packed(ids)}}),
		score(obj{"tokens": obj{"packed": base64.StdEncoding.EncodeToString([]byte(markPrompt))}}),
		score(obj{"blockHashes": obj{"blockSize": 4, "packed": []byte(markSalt)}}), score(nil),
		score(obj{"tokens": obj{"ids": ids}, "features": []obj{{"hash": markExtra, "offset": 1 << 20, "length": 1}}}),
		score(obj{"tokens": obj{"ids": ids}, "model": "trt", "candidates": []string{"s0"}}),
		quoting(score(obj{"tokens": obj{"ids": ids}, "returnTokens": true})),
		score(with(unsalted, http("/v1/chat/completions", chat+"}"))),
		score(http("/v1/chat/completions", chat+`,"cache_salt":"`+markExtra+`"}`)), // not the salt of the request
		score(with(unsalted, http("/v1/chat/completions", chat+`,"cache_salt":"`+markSalt+`"`))),
		score(with(unsalted, http("/v1/embeddings", chat+"}"))),
		score(with(unsalted, http("/v1/completions", `{"model":"m","prompt":["`+markPrompt+`","`+markPrompt+`"]}`))),
		score(with(unsalted, http("/v1/completions", `{"model":"m","prompt":[1912837460,1912837461]}`))),
		score(with(unsalted, http("/v1/completions", `{"model":"m","prompt":"`+markPrompt+`","fault":"status"}`))),
		quoting(score(with(unsalted, http("/v1/completions", `{"model":"m","prompt":"`+markPrompt+`","fault":"quote"}`)))),
		score(with(unsalted, http("/v1/completions", `{"model":"m","prompt":"`+markPrompt+`","fault":"garbage"}`))),
		score(with(unsalted, http("/v1/completions", `{"model":"m","prompt":"`+markPrompt+`","fault":"hang up"}`))),
		{method: scoreMethod, body: bad}, {method: scoreMethod, body: append(bad, `"`+markPrompt+`"]}}`...)},
		{method: scoreMethod, body: []byte(`{"` + markSalt + `":1}`)}, {method: scoreMethod, body: []byte(markPrompt)},
		{method: scoreMethod, body: []byte(`{"tokens":{"packed":"` + markPrompt + `!"}}`)},
		{method: scoreMethod, body: []byte(`{"cacheSalt":"` + markSalt + `","role":"` + markExtra + `"}`)},
		{method: "kvscout.v1.ScoreService/ScoreBatch", body: obj{"requests": []obj{score(obj{"tokens": obj{"ids": ids}}).body.(obj), score(nil).body.(obj)}}},
		{method: "kvscout.v1.ScoreService/ScoreStream", body: obj{"request": score(obj{"tokens": obj{"ids": ids}}).body}},
		{method: "kvscout.v1.RenderService/Render", body: with(obj{"model": "m"}, http("/v1/chat/completions", chat+"}")), quotes: true},
		{method: "kvscout.v1.RenderService/Render", body: with(obj{"model": "m"}, http("/v1/chat/completions", chat))},
		report("ReportRouted", obj{"prompt": prompt}), report("ReportRouted", obj{"scoreId": "none"}),
		report("ReportOutcome", obj{"scoreId": "none", "promptTokens": 9, "cachedTokens": 4}),
		{method: inspectMethod, body: obj{"prompt": prompt}, quotes: true},
		{method: inspectMethod, body: obj{"prompt": with(prompt, obj{"model": "trt"})}},
		{method: "kvscout.v1.IndexService/Dump", body: obj{"worker": obj{"workerId": "s0"}}, quotes: true},
		{method: "kvscout.v1.IndexService/Clear", body: obj{"namespace": obj{"model": "m", "cacheSalt": markSalt}}},
		{method: "kvscout.v1.IndexService/Clear", body: obj{"namespace": obj{"model": "none", "cacheSalt": markSalt, "adapter": ""}}},
		{method: listMethod, body: obj{}}, {method: statsMethod, body: obj{}},
		{method: "kvscout.v1.NoService/" + "Score", body: obj{"cacheSalt": markSalt}},
	}
}

// leakyRenderer renders everything to the same ids, or fails as the body says, and quotes what it was sent in doing so.
func leakyRenderer(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		ids := asJSON(t, markIDs(renderedToken))
		text := string(body)
		switch {
		case strings.Contains(text, `"fault":"status"`):
			http.Error(w, text, http.StatusBadGateway)
		case strings.Contains(text, `"fault":"quote"`):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(asJSON(t, obj{"error": obj{"message": "bad prompt " + text, "type": "BadRequestError", "code": 400}}))
		case strings.Contains(text, `"fault":"garbage"`):
			fmt.Fprintf(w, `[{"token_ids": [%d, "%s"]}]`, renderedToken, markPrompt)
		case strings.Contains(text, `"fault":"hang up"`):
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(r.URL.Path, "/v1/completions"):
			fmt.Fprintf(w, `[{"token_ids": %s}]`, ids)
		default:
			fmt.Fprintf(w, `{"token_ids": %s}`, ids)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// leakyWorker answers no question about itself, and quotes a secret.
func leakyWorker(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such thing, and the salt is "+markSalt, http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// secretForms are the ways a request is sent: content type, and how its message is wrapped.
var secretForms = []struct {
	name, contentType, streaming string
	http2, framed                bool
}{
	{"connect json", "application/json", "application/connect+json", false, false},
	{"connect proto", "application/proto", "application/connect+proto", false, false},
	{"grpc-web", "application/grpc-web+proto", "application/grpc-web+proto", false, true},
	{"grpc", "application/grpc+proto", "application/grpc+proto", true, true},
}

// encoded is a body in JSON, or in the proto of the method's request.
func encoded(t testing.TB, method protoreflect.MethodDescriptor, body any, contentType string) []byte {
	t.Helper()
	b := asJSON(t, body)
	if _, raw := body.([]byte); raw || method == nil || strings.HasSuffix(contentType, "json") {
		return b
	}
	msg := dynamicpb.NewMessage(method.Input())
	if err := protojson.Unmarshal(b, msg); err != nil {
		t.Fatalf("%s: %v in %s", method.FullName(), err, b)
	}
	out, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func methodNamed(path string) protoreflect.MethodDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(path, "/", ".")))
	if err != nil {
		return nil
	}
	return d.(protoreflect.MethodDescriptor)
}

// exchange sends one request and returns everything that comes back.
func exchange(t testing.TB, c *http.Client, base string, in secretRequest, form int, authorization string) string {
	t.Helper()
	f, method := secretForms[form], methodNamed(in.method)
	contentType, framed := f.contentType, f.framed
	if method != nil && (method.IsStreamingServer() || method.IsStreamingClient()) {
		contentType, framed = f.streaming, true
	}
	body := encoded(t, method, in.body, contentType)
	if framed {
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/"+in.method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Api-Key", markHeader)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body) // cut answers are answers too
	return fmt.Sprint(resp.Status, resp.Header, string(answer), resp.Trailer)
}

// Case 119 and the promise of docs/security.md: a server that logs all it can, and is sent secrets in requests good and bad
// over every protocol, in events and by recordings, has none of them in its log, its statistics, its metrics or its errors.
func TestSecrets_StayInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	callers := file("callers", "score gateway token:"+markScore+"\noperate admin token:"+markOperate+"\n")
	first := freePorts(t, 2)
	addr, admin := "127.0.0.1:"+strconv.Itoa(first), "127.0.0.1:"+strconv.Itoa(first+1)
	renderer, worker := leakyRenderer(t), leakyWorker(t)
	args := []string{"serve", "--listen", addr, "--admin-listen", admin, "--log-level", "debug", "--callers", callers,
		"--renderer", renderer, "--renderer-token-file", file("renderer", markRenderer), "--worker-network", "127.0.0.0/8",
		"--snapshot", filepath.Join(dir, "snapshot"), "--config-poll", "10ms",
		"--source", "id=trt,engine=trtllm,model=trt,events=http://127.0.0.1:1/kv_cache_events"}
	cmd := exec.Command(program, args...)
	cmd.Env = clearedEnv()
	var out everything
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // ends with the process, which the cleanup kills and waits for
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	eventually(t, "the server serves", func() bool { return strings.Contains(out.String(), "kvscout serves on") })

	base := "http://" + addr
	plain, two := new(http.Protocols), new(http.Protocols)
	plain.SetHTTP1(true)
	two.SetUnencryptedHTTP2(true)
	clients := []*http.Client{{Timeout: patience, Transport: &http.Transport{Protocols: plain}}, {Timeout: patience, Transport: &http.Transport{Protocols: two}}}
	t.Cleanup(func() { clients[0].CloseIdleConnections(); clients[1].CloseIdleConnections() })
	requests := secretRequests(t, renderer, worker)
	sent := 0
	for form, f := range secretForms {
		c := clients[0]
		if f.http2 {
			c = clients[1]
		}
		for i, in := range requests {
			if m := methodNamed(in.method); m != nil && m.IsStreamingClient() && !f.http2 {
				c = clients[1]
			}
			for _, token := range []string{"", markWrong, markScore, markOperate} {
				authorization := "Bearer " + token
				if token == "" {
					authorization = ""
				}
				answer := exchange(t, c, base, in, form, authorization)
				sent++
				if in.quotes {
					continue
				}
				for _, leak := range leaks(answer) {
					t.Errorf("%s, request %d of %s with %.5q is answered with %s", f.name, i, in.method, token, leak)
				}
			}
		}
	}
	operate := func(method string) string {
		return exchange(t, clients[0], base, secretRequest{method: method, body: obj{}}, 0, "Bearer "+markOperate)
	}
	// A file of callers that is broken, with tokens where they do not belong; a recording whose ids would be seen as numbers.
	if err := os.WriteFile(callers, []byte(markOperate+" "+markScore+" "+markWrong+"\nscore x token:"+markScore+" "+markWrong+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the broken file is told", func() bool { return strings.Contains(out.String(), "file is wrong") })
	replayed := exec.Command(program, "replay", "--server", base, "--token-file", file("operate", markOperate), "--speed", "max", "--model", "r",
		filepath.Join(root, "test", "testdata", "recordings", "sglang-0.5.19-radix_p16_salt.kvrec"))
	replayed.Env = clearedEnv()
	told, err := replayed.CombinedOutput()
	if err != nil {
		t.Errorf("replay: %v\n%s", err, told)
	}
	pages := map[string]string{"GetStats": operate(statsMethod), "ListWorkers": operate(listMethod), "replay": string(told)}
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		resp, err := clients[0].Get("http://" + admin + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		pages[path] = string(text)
	}
	_ = cmd.Process.Signal(os.Interrupt) // it writes its snapshot, and says so
	<-ended
	pages["log"] = out.String()
	for name, text := range pages {
		for _, leak := range leaks(text) {
			t.Errorf("%s has %s", name, leak)
		}
	}
	if found := numbers.FindString(pages["log"]); found != "" {
		t.Errorf("the log has numbers in a row: %s", found)
	}
	// The test would prove nothing if what it sends were not dealt with.
	for name, wants := range map[string][]string{
		"log":      {"msg=call", "BAD_TOKEN", "ROLE_MISSING", "BAD_BODY", "RENDERER_DOWN"},
		"GetStats": {`"s0"`, "bad_payload", "NO_CREDENTIAL", "SALT_MISMATCH"},
		"/metrics": {"kvscout_"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[name], want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
	if i := strings.Index(pages["log"], "anic"); i >= 0 {
		t.Errorf("the server wrote of a panic: %.6000s", pages["log"][max(0, i-200):])
	}
	t.Logf("%d requests, %d bytes of log", sent, len(pages["log"]))
}

// everything keeps all that is written.
type everything struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (e *everything) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.buf.Write(p)
}

func (e *everything) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.buf.String()
}
