package scorerpc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// Case 159: the server itself ends a Score of a million tokens when the deadline that came with it is over. The client here
// has none, so that the answer is the server's word.
func TestScore_Case159_LongPromptEndsInTime(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "w0", "m", events.EngineVLLM)
	prompt := seq(1, 1<<20)
	for at := 0; at < 1<<16; at += 1 << 13 { // blocks of one token, as many as frames may have
		var hashes []any
		for i := range 1 << 13 {
			hashes = append(hashes, at+i+1)
		}
		var parent any
		if at > 0 {
			parent = at
		}
		r.publish(t, "w0", []any{"BlockStored", hashes, parent, prompt[at : at+1<<13], 1})
	}
	body, err := proto.Marshal(&kvscoutv1.ScoreRequest{Tokens: ids(prompt)})
	if err != nil {
		t.Fatal(err)
	}
	for _, ms := range []int{1, 2, 4, 60_000} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/kvscout.v1.ScoreService/Score", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/proto")
		req.Header.Set("Connect-Protocol-Version", "1")
		req.Header.Set("Connect-Timeout-Ms", fmt.Sprint(ms))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if ms == 60_000 {
			var answer kvscoutv1.ScoreResponse
			if err := proto.Unmarshal(got, &answer); resp.StatusCode != http.StatusOK || err != nil || answer.GetWorkers()[0].GetHeldTokens() != 1<<16 {
				t.Errorf("with time enough: %d, %v, %v", resp.StatusCode, err, &answer)
			}
			continue
		}
		if resp.StatusCode == http.StatusOK && ms > 1 {
			continue // a quick machine
		}
		var fault struct{ Code string }
		if err := json.Unmarshal(got, &fault); err != nil || fault.Code != "deadline_exceeded" {
			t.Errorf("%d ms: %d %.200s", ms, resp.StatusCode, got)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
