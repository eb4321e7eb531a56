package recording

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const goodLine = `{"kind":"note","t":1,"text":"good"}`

// A bad line costs itself, is reported with its number and without the values in it, and the next line is read.
func TestLines_BadOnes(t *testing.T) {
	request := func(members string) string {
		return `{"kind":"request","t":1,"source":"w0/0","prompt_tokens":1,"cached_tokens":0,` + members + `}`
	}
	source := func(members string) string {
		return `{"kind":"source","t":1,"source":"w0/0","engine":"vllm",` + members + `}`
	}
	for name, line := range map[string]string{
		"no JSON":                `{"kind":"note","t":1,"text":"sec`,
		"no object":              `["kind","note"]`,
		"kind missing":           `{"t":1}`,
		"kind a number":          `{"kind":2}`,
		"member twice":           `{"kind":"note","t":1,"t":2}`,
		"too many members":       `{"kind":"note"` + manyMembers(maxFields) + `}`,
		"time a string":          `{"kind":"note","t":"secret"}`,
		"time a fraction":        `{"kind":"note","t":1.5}`,
		"time over 64 bits":      `{"kind":"note","t":9223372036854775808}`,
		"not UTF-8":              "{\"kind\":\"note\",\"t\":1,\"text\":\"\xff\"}",
		"source missing":         `{"kind":"message","t":1,"frames":["","AAAAAAAAAAM=","AQ=="]}`,
		"frames missing":         `{"kind":"message","t":1,"source":"w0/0"}`,
		"frame not base64":       `{"kind":"message","t":1,"source":"w0/0","frames":["secret!"]}`,
		"frame null":             `{"kind":"message","t":1,"source":"w0/0","frames":[null]}`,
		"frames a string":        `{"kind":"message","t":1,"source":"w0/0","frames":"secret"}`,
		"too many frames":        `{"kind":"message","t":1,"source":"w0/0","frames":[` + strings.Repeat(`"",`, maxItems) + `""]}`,
		"tokens not base64":      request(`"token_ids":"secret!"`),
		"tokens not of 4":        request(`"token_ids":"AAAAAAA="`),
		"token negative":         request(`"token_ids":"AQAAAP////8="`),
		"salt a number":          request(`"cache_salt":77777`),
		"after a list":           request(`"after":[1]`),
		"after negative":         request(`"after":{"w0/0":-1}`),
		"after twice":            request(`"after":{"w0/0":1,"w0/0":2}`),
		"body with half a pair":  request(`"body":"secret \ud83d"`),
		"body with halves wrong": request(`"body":"secret \ude00\ud83d"`),
		"features a list":        request(`"features":[1]`),
		"hash without place":     request(`"features":{"mm_hashes":{"image":["secret"]}}`),
		"place without hash":     request(`"features":{"mm_placeholders":{"image":[{"offset":1,"length":1}]}}`),
		"place of other kind":    request(`"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"audio":[{"offset":1,"length":1}]}}`),
		"place without length":   request(`"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":1}]}}`),
		"place negative":         request(`"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":-1,"length":1}]}}`),
		"count negative":         request(`"host_cached_tokens":-1`),
		"no engine's word":       `{"kind":"request","t":1,"source":"w0/0","prompt_tokens":1}`,
		"engine's word null":     `{"kind":"request","t":1,"source":"w0/0","prompt_tokens":1,"cached_tokens":null}`,
		"engine unknown":         `{"kind":"source","t":1,"source":"w0/0","engine":"other"}`,
		"source id":              `{"kind":"source","t":1,"source":"w0","engine":"vllm"}`,
		"speculative unknown":    source(`"speculative":"ngram"`),
		"flag a number":          source(`"reuse_reports":1`),
		"unpublished unknown":    source(`"unpublished":["weather"]`),
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := readAll(t, []byte(goodLine+"\n"+line+"\n"+goodLine+"\n"))
			if len(got) != 2 || len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
				t.Fatalf("%d records, %v", len(got), faults)
			}
			text := faults[0].Error()
			if !strings.Contains(text, "line 2") || strings.Contains(text, "secret") || strings.Contains(text, "77777") {
				t.Errorf("error %q", text)
			}
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return b.String()
}

func TestLines_Accepted(t *testing.T) {
	got := mustRead(t, []byte("\n  "+goodLine+"\r\n\n"+
		`{"t":2,"source":"w0/0","kind":"request","cached_tokens":3,"prompt_tokens":5,"cache_salt":null,"host_cached_tokens":0,`+
		`"token_ids":"AAAAAP///38=","body":"é \ud83d\ude00 \\ud83d \u0000","later":{"a": 1},"note":"x","gone":null}`+"\n"))
	want := []*Record{
		{Kind: KindNote, Time: 1, Text: "good"},
		{Kind: KindRequest, Time: 2, Source: "w0/0", Request: &Request{
			PromptTokens: 5, CachedTokens: 3, HasHost: true, Tokens: []uint32{0, 1<<31 - 1},
			Body: []byte("é 😀 \\ud83d \x00"), Extra: map[string]string{"later": `{"a": 1}`, "note": "x"},
		}},
	}
	equal(t, got, want)
	equal(t, mustRead(t, dump(t, got, 1)), want)
}

// Items of several modalities come in prompt order.
func TestLines_FeaturesInPromptOrder(t *testing.T) {
	got := mustRead(t, []byte(`{"kind":"request","t":1,"source":"w0/0","prompt_tokens":1,"cached_tokens":0,"features":{`+
		`"mm_placeholders":{"video":[{"offset":20,"length":4}],"image":[{"offset":40,"length":2},{"offset":3,"length":7}]},`+
		`"mm_hashes":{"image":["i1","i2"],"video":["v1"]}}}`+"\n"))
	want := []Feature{{"image", "i2", 3, 7}, {"video", "v1", 20, 4}, {"image", "i1", 40, 2}}
	if fmt.Sprint(got[0].Request.Features) != fmt.Sprint(want) {
		t.Errorf("%v", got[0].Request.Features)
	}
}

func TestLines_UnknownKindIsCounted(t *testing.T) {
	r, err := NewReader(strings.NewReader(`{"kind":"weather","t":1}` + "\n" + goodLine + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, faults := drain(t, r)
	if len(got) != 1 || len(faults) != 0 || r.Unknown() != 1 {
		t.Errorf("%d records, %v, %d unknown", len(got), faults, r.Unknown())
	}
}

// A line over the bound is passed over without being kept.
func TestLines_TooLong(t *testing.T) {
	long := `{"kind":"note","t":1,"text":"` + strings.Repeat("x", 1<<20) + `"}`
	r, err := newReader(strings.NewReader(goodLine+"\n"+long+"\n"+goodLine+"\n"), limits{record: 1000, frame: 1000})
	if err != nil {
		t.Fatal(err)
	}
	got, faults := drain(t, r)
	if len(got) != 2 || len(faults) != 1 || !strings.Contains(faults[0].Error(), "line 2 is over 1000 bytes") {
		t.Errorf("%d records, %v", len(got), faults)
	}
	if kept := cap(r.form.(*lineReader).line); kept > 4000 {
		t.Errorf("kept %d bytes", kept)
	}
}
