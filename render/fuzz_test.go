package render

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// FuzzDecodeResponse: what is accepted is JSON to encoding/json too and has the ids that it reads there; nothing accepted
// is empty; and how the bytes are cut into reads makes no difference.
func FuzzDecodeResponse(f *testing.F) {
	for _, seed := range []string{
		`{"token_ids":[1,2],"features":null,"sampling_params":{"stop":["\ud83d\ude00"],"top_p":1.0e0}}`,
		`[{"token_ids":[1]},{"token_ids":[2147483647]}]`,
		`{"token\u005fids":[0],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":0,"length":1}]}}}`,
		`{"input_ids":[1]}`, `{"token_ids":[-1]}`, `{"token_ids":[1e3]}`, `[[[[`, `{"a":"\ud800\u0041"}`, ` {"token_ids" : [ 1 ] , "a":tru`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	for _, list := range goldens(f) {
		for _, g := range list {
			if g.Response != nil {
				f.Add([]byte(g.Response), false)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, list bool) {
		_ = decodeRefusal(bytes.NewReader(body))
		got, err := decode(bytes.NewReader(body), list, wide)
		slow, slowErr := decode(iotest.OneByteReader(bytes.NewReader(body)), list, wide)
		if diff := cmp.Diff(got, slow); diff != "" || (err == nil) != (slowErr == nil) {
			t.Fatalf("one by one: %v, %v\n%s", err, slowErr, diff)
		}
		if err != nil {
			if got != nil {
				t.Fatalf("prompts beside error %v", err)
			}
			return
		}
		if diff := cmp.Diff(reference(t, body, list), ids(got)); diff != "" || len(got) == 0 {
			t.Fatalf("differs from encoding/json (-json +got):\n%s", diff)
		}
	})
}

func ids(prompts []Prompt) (all [][]uint32) {
	for _, p := range prompts {
		all = append(all, p.Tokens)
	}
	return all
}

// reference reads the ids with encoding/json. Objects become maps because struct fields would match in any case.
func reference(t *testing.T, body []byte, list bool) (all [][]uint32) {
	elements := []map[string]json.RawMessage{nil}
	var into any = &elements[0]
	if list {
		into = &elements
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("accepted, but encoding/json says %v", err)
	}
	for _, e := range elements {
		var ids []uint32
		if err := json.Unmarshal(e["token_ids"], &ids); err != nil || len(ids) == 0 {
			t.Fatalf("accepted, but encoding/json reads ids %v, %v", ids, err)
		}
		all = append(all, ids)
	}
	return all
}

func BenchmarkDecodeAnswer(b *testing.B) {
	ids := make([]uint32, 100_000)
	for i := range ids {
		ids[i] = uint32(i*7919) % 151_000
	}
	list, err := json.Marshal(ids)
	if err != nil {
		b.Fatal(err)
	}
	body := append(append([]byte(`{"token_ids":`), list...), `,"model":"m"}`...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(bytes.NewReader(body), false, limits{tokens: DefaultMaxTokens, prompts: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
