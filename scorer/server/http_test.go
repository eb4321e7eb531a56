package server_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/server"
)

const scorePath = kvscoutv1connect.ScoreServiceScoreProcedure

// packed is the tokens 1..n as a caller packs them.
func packed(n int) []byte {
	var out []byte
	for i := range n {
		out = binary.LittleEndian.AppendUint32(out, uint32(i+1))
	}
	return out
}

// do sends what curl would send and returns status and JSON.
func do(t testing.TB, c *http.Client, req *http.Request) (int, map[string]any) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("status %d, body %q: %v", resp.StatusCode, body, err)
	}
	return resp.StatusCode, out
}

func post(t testing.TB, r *rig, body string, header ...string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(scorePath), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return do(t, client(t, false), req)
}

// best is the first worker of an answer.
func best(t testing.TB, answer map[string]any) map[string]any {
	t.Helper()
	workers, _ := answer["workers"].([]any)
	if len(workers) == 0 {
		t.Fatalf("no workers in %v", answer)
	}
	return workers[0].(map[string]any)
}

// Plain JSON over HTTP/1.1, the tokens as base64 of int32: 65,536 of them, all held.
func TestHTTP_PackedJSON(t *testing.T) {
	r := startLarge(t)
	text := base64.StdEncoding.EncodeToString(packed(65536))
	status, answer := post(t, r, fmt.Sprintf(`{"model":"m","tokens":{"packed":%q}}`, text))
	if status != http.StatusOK {
		t.Fatalf("status %d: %v", status, answer)
	}
	w := best(t, answer)
	// The last block is computed again (rule 7): 65536 - 16.
	if w["heldTokens"] != 65536.0 || w["reusableTokens"] != 65520.0 || w["score"] != 1.0 || w["known"] != true {
		t.Errorf("best = %v", w)
	}
}

func TestHTTP_Errors(t *testing.T) {
	r := start(t)
	for body, want := range map[string]string{
		`{"model":"m"}`: "NO_PROMPT", `{"model":"m","tokens":{"packed":"AQID"}}`: "TOKENS_NOT_MULTIPLE_OF_4",
		`{"model":"m","tokens":{"ids":[1]},"blockHashes":{}}`: "TWO_PROMPTS", `{"tokens":{"ids":[-1]}}`: "NEGATIVE_TOKEN",
	} {
		status, answer := post(t, r, body)
		text, _ := json.Marshal(answer["details"])
		if status != http.StatusBadRequest || answer["code"] != "invalid_argument" || !strings.Contains(string(text), `"`+want+`"`) {
			t.Errorf("%s: status %d, %v, want %s", body, status, answer, want)
		}
	}
	// What cannot be read has a code.
	if status, answer := post(t, r, `{"tokens":`); status != http.StatusBadRequest || answer["code"] != "invalid_argument" {
		t.Errorf("broken JSON: %d, %v", status, answer)
	}
	if status, answer := post(t, r, `{"tokens":{"ids":[1.5]}}`); status != http.StatusBadRequest || answer["code"] != "invalid_argument" {
		t.Errorf("a fraction: %d, %v", status, answer)
	}
}

// Score changes nothing, so Connect GET may carry it, by hand and by the generated client.
func TestHTTP_ConnectGet(t *testing.T) {
	r := startLarge(t)
	query := url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {`{"model":"m","tokens":{"ids":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}}`}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url(scorePath)+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := do(t, client(t, false), req)
	if status != http.StatusOK || best(t, answer)["heldTokens"] != 16.0 {
		t.Errorf("status %d: %v", status, answer)
	}
	c := kvscoutv1connect.NewScoreServiceClient(client(t, false), r.url(""), connect.WithHTTPGet())
	resp, err := c.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed(65536)}}))
	if err != nil || resp.Msg.GetWorkers()[0].GetHeldTokens() != 65536 {
		t.Errorf("%v, %v", resp, err)
	}
}

// Case 76 and rule 17: a message over the limit is refused before any handler, compressed or not, and memory stays flat.
func TestRule17_Case76_LargeMessages(t *testing.T) {
	r := start(t, func(o *server.Options) { o.ReadMaxBytes = 1 << 20 })
	large := `{"model":"` + strings.Repeat("x", 1<<20) + `"}`
	if status, answer := post(t, r, large); status != http.StatusTooManyRequests || answer["code"] != "resource_exhausted" {
		t.Errorf("plain: %d, %v", status, answer)
	}
	bomb := deflated(t, strings.Repeat("\x00", 64<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status, answer := post(t, r, bomb, "Content-Encoding", "gzip")
	runtime.ReadMemStats(&after)
	if status != http.StatusTooManyRequests || answer["code"] != "resource_exhausted" {
		t.Errorf("gzip of 64 MiB: %d, %v", status, answer)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("%d bytes were allocated for a message of 1 MiB at most", grown)
	}
}

// deflated is text in gzip's form.
func deflated(t testing.TB, text string) string {
	t.Helper()
	var out strings.Builder
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A compressed message is read up to exactly the limit, and the next on the same connection too.
func TestHTTP_CompressedUpToTheLimit(t *testing.T) {
	const limit = 4096
	r := start(t, func(o *server.Options) { o.ReadMaxBytes = limit })
	request := `{"model":"m","tokens":{"ids":[1]}}`
	for extra, want := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		text := request + strings.Repeat(" ", limit-len(request)+extra)
		if status, answer := post(t, r, deflated(t, text), "Content-Encoding", "gzip"); status != want {
			t.Errorf("%d bytes of %d: status %d, want %d: %v", len(text), limit, status, want, answer)
		}
	}
}

// A prompt of a million tokens fits the default limit, packed and as base64.
func TestHTTP_MillionTokensFit(t *testing.T) {
	r := startLarge(t)
	text := base64.StdEncoding.EncodeToString(packed(1 << 20))
	status, answer := post(t, r, fmt.Sprintf(`{"model":"m","tokens":{"packed":%q}}`, text))
	if status != http.StatusOK || best(t, answer)["score"] != 0.0625 { // 65536 of 2^20
		t.Errorf("status %d: %v", status, answer)
	}
}

// Answers of the usual size are not compressed, whatever the client would take.
func TestHTTP_SmallAnswersAreNotCompressed(t *testing.T) {
	r := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(scorePath), strings.NewReader(`{"model":"m","tokens":{"ids":[1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client(t, false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got := resp.Header.Get("Content-Encoding"); got == "gzip" || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, encoding %q", resp.StatusCode, got)
	}
}
