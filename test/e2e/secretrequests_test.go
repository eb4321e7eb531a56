package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kvscout/kvscout/test/testlog"
)

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
func secretRequests(t testing.TB, workerURL string) []secretRequest {
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
		{method: inspectMethod, body: obj{"prompt": prompt}},
		{method: inspectMethod, body: obj{"prompt": with(prompt, obj{"model": "trt"})}},
		{method: "kvscout.v1.IndexService/Dump", body: obj{"worker": obj{"workerId": "s0"}}},
		{method: "kvscout.v1.IndexService/Clear", body: obj{"namespace": obj{"model": "m", "cacheSalt": markSalt}}},
		{method: "kvscout.v1.IndexService/Clear", body: obj{"namespace": obj{"model": "none", "cacheSalt": markSalt, "adapter": ""}}},
		{method: listMethod, body: obj{}}, {method: statsMethod, body: obj{}},
		{method: "kvscout.v1.IndexService/StreamStats", body: obj{"interval": "-1s"}}, // a good one would not end
		{method: "kvscout.v1.IndexService/ResetWorker", body: obj{"workerId": "s0"}},
		{method: "kvscout.v1.IndexService/DeregisterWorker", body: obj{"workerId": "s0", "rank": 9}},
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

// collector takes traces and keeps what it gets.
func collector(t testing.TB) (endpoint string, got *testlog.Buffer) {
	got = new(testlog.Buffer)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Errorf("traces: %v", err)
				return
			}
			in = z
		}
		_, _ = io.Copy(got, in)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	return s.URL, got
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
