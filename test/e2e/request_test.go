package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// asked is a server with one worker "w0" of model "m" that holds the tokens 1..8.
func asked(t *testing.T, args ...string) *server {
	t.Helper()
	e := startEngine(t, engineConfig{id: "w0", replay: true})
	s := serveFleet(t, []*engine{e}, args...)
	e.hello(s)
	s.reached(t, "w0", 0, e.serve(span(1, 8)).Seq)
	return s
}

// Every bad request has its own typed error, and none is a zero score in disguise.
func TestScore_Errors(t *testing.T) {
	t.Parallel()
	s := asked(t, "--max-prompt-tokens", "100000")
	good := obj{"packed": packed(span(1, 8))}
	bad := func(reason string) failure { return failure{400, "invalid_argument", reason} }
	b64 := base64.StdEncoding.EncodeToString
	tests := []struct {
		name string
		in   obj
		want failure
	}{
		{"no prompt", obj{}, bad("NO_PROMPT")},
		{"empty tokens", obj{"tokens": obj{}}, bad("NO_PROMPT")},
		{"empty packed", obj{"tokens": obj{"packed": ""}}, bad("NO_PROMPT")},
		{"empty ids", obj{"tokens": obj{"ids": []int{}}}, bad("NO_PROMPT")},
		{"bad length", obj{"tokens": obj{"packed": b64([]byte{1, 2, 3, 4, 5})}}, bad("TOKENS_NOT_MULTIPLE_OF_4")},
		{"packed and ids", obj{"tokens": obj{"packed": packed(span(1, 8)), "ids": span(1, 8)}}, bad("TWO_PROMPTS")},
		{"tokens and hashes", obj{"tokens": good, "blockHashes": blockHashes(span(1, 8))}, bad("TWO_PROMPTS")},
		{"tokens and body", obj{"tokens": good, "httpRequest": obj{"path": "/v1/completions", "body": b64([]byte("{}"))}}, bad("TWO_PROMPTS")},
		{"negative id", obj{"tokens": obj{"ids": []int{1, -2, 3}}}, bad("NEGATIVE_TOKEN")},
		{"negative packed", obj{"tokens": obj{"packed": b64([]byte{1, 0, 0, 0x80})}}, bad("NEGATIVE_TOKEN")},
		{"id over 32 bits", obj{"tokens": obj{"ids": []int{1 << 32}}}, bad("TOKEN_TOO_LARGE")},
		{"hashes of bad length", obj{"blockHashes": obj{"blockSize": 4, "packed": b64(make([]byte, 12))}}, bad("HASHES_NOT_MULTIPLE_OF_8")},
		{"hashes without size", obj{"blockHashes": obj{"packed": b64(make([]byte, 16))}}, bad("BAD_BLOCK_SIZE")},
		{"fewer tokens than hashes", obj{"blockHashes": obj{"blockSize": 4, "packed": b64(make([]byte, 16)), "promptTokens": 7}}, bad("BAD_PROMPT_TOKENS")},
		{"feature outside", obj{"tokens": good, "features": []obj{{"hash": "a", "offset": 7, "length": 2}}}, bad("BAD_FEATURE")},
		{"weight over 1", obj{"tokens": good, "tierWeights": obj{"host": 1.5}}, bad("BAD_TIER_WEIGHT")},
		{"unknown model", obj{"model": "other", "tokens": good}, failure{404, "not_found", "UNKNOWN_MODEL"}},
		{"body without renderer", obj{"httpRequest": obj{"path": "/v1/completions", "body": b64([]byte("{}"))}}, failure{400, "failed_precondition", "NO_RENDERER"}},
		{"prompt too long", obj{"tokens": obj{"packed": packed(make([]uint32, 100_001))}}, failure{429, "resource_exhausted", "PROMPT_TOO_LONG"}},
		{"too many candidates", obj{"tokens": good, "candidates": strings.Fields(strings.Repeat("w ", 70_000))}, failure{429, "resource_exhausted", "TOO_MANY_CANDIDATES"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { s.fails(t, scoreMethod, tt.in, tt.want) })
	}
	out := new(kvscoutv1.GetStatsResponse)
	s.call(t, statsMethod, obj{}, out)
	score := out.Stats.Score
	if score.Requests != uint64(len(tests)) || score.Errors["NO_PROMPT"] != 4 || score.Errors["TWO_PROMPTS"] != 3 {
		t.Errorf("%d calls and each error counted wanted: %v", len(tests), score)
	}
	// What is no request at all is refused by the protocol.
	for _, body := range []string{"", "{", "[]", `{"tokens":{"packed":"%%"}}`, `{"tokens":{"packed":7}}`} {
		if status, answer, err := s.post(scoreMethod, []byte(body)); err != nil || status != 400 && (status != 415 || body != "") {
			t.Errorf("body %q: status %d, %v: %s", body, status, err, answer)
		}
	}
	same(t, "after all of them", s.score(t, "w0", span(1, 8)), answer{8, 4, exact, ""})
}

// Rule 13: an unknown worker, a worker of another model and one without data are told apart from an empty cache.
func TestRule13_UnknownIsNotZero(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", replay: true})
	other := startEngine(t, engineConfig{id: "other", model: "m2", replay: true})
	s := serveFleet(t, []*engine{e, other})
	s.inState(t, "w0", 0, stateLive)
	s.fails(t, scoreMethod, obj{"tokens": obj{"ids": span(1, 8)}}, failure{400, "invalid_argument", "MODEL_REQUIRED"})
	resp := s.scores(t, span(1, 8), obj{"model": "m", "candidates": []string{"w0", "nobody", "other"}})
	got := make(map[string]*kvscoutv1.WorkerScore)
	for _, w := range resp.Workers {
		got[w.WorkerId] = w
	}
	if len(resp.Workers) != 3 || got["nobody"].GetKnown() || !got["other"].GetKnown() || len(resp.Warnings) == 0 {
		t.Fatalf("three answers and a warning wanted: %v", resp)
	}
	same(t, "empty cache", got["w0"], answer{0, 0, exact, ""})
	if a, want := answerOf(got["nobody"]), (answer{0, 0, lower, "UNKNOWN_WORKER"}); a != want {
		t.Errorf("nobody: %+v, want %+v", a, want)
	}
}

// 65,536 tokens in base64, all of them held but for the last block, which is always computed.
func TestScore_LongPrompt(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", replay: true, blocks: 1 << 15})
	s := serveFleet(t, []*engine{e})
	e.hello(s)
	tokens := span(1_000_000, 1_000_000+65_535)
	s.reached(t, "w0", 0, e.serve(tokens).Seq)
	w := s.score(t, "w0", tokens)
	same(t, "65,536 tokens", w, answer{65_536, 65_532, exact, ""})
	tokens[40_000]++ // the block of token 40,000 is another one
	same(t, "other in the middle", s.score(t, "w0", tokens), answer{40_000, 40_000, exact, ""})
	same(t, "as ids", s.ask(t, tokens, 1), answer{40_000, 40_000, exact, ""})
	same(t, "as hashes", s.ask(t, tokens, 2), answer{40_000, 40_000, exact, ""})
}

// Features are part of the keys: the same placeholders with another image are another prompt.
func TestRule3_Images(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", replay: true})
	s := serveFleet(t, []*engine{e})
	e.hello(s)
	image := stored(101, nil, span(1, 8))
	image["extra_keys"] = []any{[]any{[]any{"image-a", 2}}, []any{[]any{"image-a", -2}}}
	s.reached(t, "w0", 0, e.do(publish(image)).Seq)
	for hash, held := range map[string]uint32{"image-a": 8, "image-b": 0, "": 0} {
		more := obj{}
		if hash != "" {
			more["features"] = []obj{{"modality": "image", "hash": hash, "offset": 2, "length": 5}}
		}
		same(t, fmt.Sprintf("image %q", hash), s.scoreRank(t, "w0", 0, span(1, 9), more), answer{held, held, exact, ""})
	}
}
