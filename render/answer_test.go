package render

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var wide = limits{tokens: 1000, prompts: 4}

// noAnswers are what no chat render answers; noLists what no completions render does.
var noAnswers = map[string]string{
	"nothing":                ``,
	"white space":            " \n",
	"html":                   `<html><body>502 Bad Gateway</body></html>`,
	"null":                   `null`,
	"string":                 `"token_ids"`,
	"number":                 `5`,
	"empty object":           `{}`,
	"no token_ids":           `{"model":"m"}`,
	"null token_ids":         `{"token_ids":null}`,
	"empty token_ids":        `{"token_ids":[]}`,
	"string token_ids":       `{"token_ids":"1,2"}`,
	"object token_ids":       `{"token_ids":{"0":1}}`,
	"nested token_ids":       `{"token_ids":[[1,2]]}`,
	"token_ids deeper":       `{"data":{"token_ids":[1]}}`,
	"other case":             `{"Token_IDs":[1]}`,
	"sglang":                 `{"rid":"chatcmpl-ce9d6172-0","input_ids":[154822,154824],"stream":false}`,
	"trtllm, not trusted":    `{"token_ids":[1,2],"tokens_trusted":false,"untrusted_reason":"named_tool_choice"}`,
	"negative id":            `{"token_ids":[1,-2]}`,
	"minus zero":             `{"token_ids":[-0]}`,
	"float id":               `{"token_ids":[1.5]}`,
	"integral float id":      `{"token_ids":[1.0]}`,
	"exponent id":            `{"token_ids":[1e3]}`,
	"id over int32":          `{"token_ids":[2147483648]}`,
	"id over uint64":         `{"token_ids":[99999999999999999999999]}`,
	"id with a leading zero": `{"token_ids":[01]}`,
	"null id":                `{"token_ids":[null]}`,
	"bool id":                `{"token_ids":[true]}`,
	"string id":              `{"token_ids":["1"]}`,
	"two token_ids":          `{"token_ids":[1],"token_ids":[1]}`,
	"two, one escaped":       `{"token_ids":[1],"token\u005fids":[2]}`,
	"comma at the end":       `{"token_ids":[1,]}`,
	"comma after member":     `{"token_ids":[1],}`,
	"comma first":            `{"token_ids":[,1]}`,
	"no comma":               `{"token_ids":[1 2]}`,
	"cut in ids":             `{"token_ids":[1,2`,
	"cut after ids":          `{"token_ids":[1,2]`,
	"something follows":      `{"token_ids":[1]} {}`,
	"error in a 200":         `{"error":{"message":"no","type":"BadRequestError"}}`,
	"bad literal":            `{"token_ids":[1],"stream":falsy}`,
	"nan":                    `{"token_ids":[1],"top_p":NaN}`,
	"bad number":             `{"token_ids":[1],"top_p":1.}`,
	"bad number 2":           `{"token_ids":[1],"top_p":-}`,
	"bad number 3":           `{"token_ids":[1],"top_p":00}`,
	"bad number 4":           `{"token_ids":[1],"top_p":1e}`,
	"bad escape":             `{"token_ids":[1],"model":"\x"}`,
	"bad hex":                `{"token_ids":[1],"model":"\u12g4"}`,
	"control character":      "{\"token_ids\":[1],\"model\":\"a\nb\"}",
	"key is no string":       `{1:2,"token_ids":[1]}`,
	"no colon":               `{"token_ids" [1]}`,
	"nested junk":            `{"token_ids":[1],"x":` + strings.Repeat("[", 100000),
	"nested junk in ids":     `{"token_ids":` + strings.Repeat(`[`, 100000),
	"nested objects":         `{"token_ids":[1],"x":` + strings.Repeat(`{"a":`, 100000),
	"array for a chat":       `[{"token_ids":[1]}]`,
}

var noLists = map[string]string{
	"empty array":         `[]`,
	"object":              `{"token_ids":[1]}`,
	"null element":        `[null]`,
	"second has no ids":   `[{"token_ids":[1]},{}]`,
	"second has empty":    `[{"token_ids":[1]},{"token_ids":[]}]`,
	"second is of sglang": `[{"token_ids":[1]},{"input_ids":[1]}]`,
	"cut":                 `[{"token_ids":[1]},`,
}

// TestRule14_NoAnswerBecomesAnEmptyPrompt: whatever is not an answer with ids is an error, never a prompt without them.
// Case69: an empty prompt would score nothing while everything looks healthy.
func TestRule14_NoAnswerBecomesAnEmptyPrompt(t *testing.T) {
	for _, c := range []struct {
		kind   string
		list   bool
		bodies map[string]string
	}{{"chat", false, noAnswers}, {"completions", true, noLists}} {
		for name, body := range c.bodies {
			t.Run(c.kind+"/"+name, func(t *testing.T) {
				prompts, err := decode(strings.NewReader(body), c.list, wide)
				if !errors.Is(err, ErrContract) || prompts != nil {
					t.Errorf("got %v, %v, want ErrContract", prompts, err)
				}
			})
		}
	}
}

func TestDecodeAnswer_Accepts(t *testing.T) {
	for name, body := range map[string]string{
		"plain":             `{"token_ids":[0,7,2147483647]}`,
		"spaces":            " {\r\n\t\"token_ids\" : [ 0 ,\n7 , 2147483647 ] } \n",
		"escaped name":      `{"token\u005fids":[0,7,2147483647]}`,
		"also input_ids":    `{"input_ids":null,"token_ids":[0,7,2147483647]}`,
		"duplicate unknown": `{"a":1,"a":2,"token_ids":[0,7,2147483647]}`,
		"null features":     `{"features":null,"sampling_params":null,"token_ids":[0,7,2147483647]}`,
		"schema in kwargs":  `{"x":` + strings.Repeat(`{"properties":[`, 50) + strings.Repeat(`]}`, 50) + `,"token_ids":[0,7,2147483647]}`,
		"numbers":           `{"x":[0,-0,0.5,-1e+10,1E-5,10,0e0,123456789012345678901234567890],"token_ids":[0,7,2147483647]}`,
		"strings":           `{"x":["","\"","\\","\ud800","\udc00\ud83d\ude00","` + "\xff" + `"],"token_ids":[0,7,2147483647]}`,
	} {
		for _, r := range []string{"whole", "bytewise"} {
			t.Run(name+"/"+r, func(t *testing.T) {
				in := iotest.OneByteReader(strings.NewReader(body))
				if r == "whole" {
					in = strings.NewReader(body)
				}
				got, err := decode(in, false, wide)
				if diff := cmp.Diff([]Prompt{{Tokens: []uint32{0, 7, 1<<31 - 1}}}, got); err != nil || diff != "" {
					t.Errorf("err %v, differs:\n%s", err, diff)
				}
			})
		}
	}
}

// TestRule17_AnswersAreBounded: one more than any limit is ErrTooLarge, the limit itself is fine.
func TestRule17_AnswersAreBounded(t *testing.T) {
	features := func(hashes string) string {
		return `{"token_ids":[1],"features":{"mm_placeholders":{},"mm_hashes":` + hashes + `}}`
	}
	var modalities []string
	for i := range maxModalities + 1 {
		modalities = append(modalities, fmt.Sprintf(`"m%d":[]`, i))
	}
	for name, c := range map[string]struct {
		body string
		list bool
		want error
	}{
		"tokens at the limit":    {`[{"token_ids":[1,2]},{"token_ids":[3]}]`, true, nil},
		"tokens over the limit":  {`[{"token_ids":[1,2]},{"token_ids":[3,4]}]`, true, ErrTooLarge},
		"prompts over the limit": {`[{"token_ids":[1]},{"token_ids":[2]},{"token_ids":[3]}]`, true, ErrTooLarge},
		"items":                  {features(`{"image":["a"` + strings.Repeat(`,"a"`, maxFeatures) + `]}`), false, ErrTooLarge},
		"hash":                   {features(`{"image":["` + strings.Repeat("a", maxHash+1) + `"]}`), false, ErrTooLarge},
		"modalities":             {features(`{` + strings.Join(modalities, ",") + `}`), false, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(strings.NewReader(c.body), c.list, limits{tokens: 3, prompts: 2})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestDecodeAnswer_Case157_CacheNotRead: the renderer tells that the engine will not read its cache.
func TestDecodeAnswer_Case157_CacheNotRead(t *testing.T) {
	for body, want := range map[string]bool{
		`{"token_ids":[1],"sampling_params":{"prompt_logprobs":0,"skip_reading_prefix_cache":true}}`: true,
		`{"token_ids":[1],"sampling_params":{"skip_reading_prefix_cache":false}}`:                    false,
		`{"token_ids":[1],"sampling_params":{"skip_reading_prefix_cache":null}}`:                     false,
		`{"token_ids":[1],"sampling_params":{"x":{"skip_reading_prefix_cache":true}}}`:               false,
		`{"token_ids":[1],"sampling_params":[]}`:                                                     false,
		`{"token_ids":[1]}`:                                                                          false,
	} {
		got, err := decode(strings.NewReader(body), false, wide)
		if err != nil || got[0].SkipsPrefixCache != want {
			t.Errorf("%s: got %+v, %v, want %v", body, got, err, want)
		}
	}
}

// TestDecodeAnswer_KeepsReadErrors: a broken stream is not a broken contract.
func TestDecodeAnswer_KeepsReadErrors(t *testing.T) {
	broken := errors.New("connection reset")
	body := `{"token_ids":[1,2,3],"model":"m","features":{"mm_hashes":{"image":["\u0061"]},"mm_placeholders":{"image":[{"offset":1,"length":1}]}},"x":[true,1.5e3]`
	for n := range len(body) {
		in := io.MultiReader(strings.NewReader(body[:n]), iotest.ErrReader(broken))
		_, err := decode(in, false, wide)
		if !errors.Is(err, broken) {
			t.Fatalf("after %d bytes: got %v, want the read error", n, err)
		}
	}
}
