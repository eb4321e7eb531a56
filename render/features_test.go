package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeAnswer_Features(t *testing.T) {
	for name, c := range map[string]struct {
		features string
		want     []Feature
	}{
		"reference": {
			`{"mm_hashes":{"image":["abc"]},"mm_placeholders":{"image":[{"offset":2,"length":5}]},"kwargs_data":null,"mm_metadata":null}`,
			[]Feature{{"image", "abc", 2, 5}},
		},
		"two kinds in prompt order": {
			`{"mm_placeholders":{"image":[{"offset":6,"length":1},{"offset":0,"length":2}],"audio":[{"length":2,"offset":3,"is_embed":null}]},
			  "mm_hashes":{"audio":["a0"],"image":["i0","i1"]},"kwargs_data":{"image":["AAAA",null]}}`,
			[]Feature{{"image", "i1", 0, 2}, {"audio", "a0", 3, 2}, {"image", "i0", 6, 1}},
		},
		"audio inside of video": {
			`{"mm_hashes":{"video":["v"],"audio":["a"]},"mm_placeholders":{"video":[{"offset":1,"length":6}],"audio":[{"offset":1,"length":3}]}}`,
			[]Feature{{"audio", "a", 1, 3}, {"video", "v", 1, 6}},
		},
		"escaped hash": {`{"mm_hashes":{"image":["\ud83d\ude00\n"]},"mm_placeholders":{"image":[{"offset":0,"length":7}]}}`, []Feature{{"image", "😀\n", 0, 7}}},
		"no items":     {`{"mm_hashes":{},"mm_placeholders":{}}`, nil},
		"empty lists":  {`{"mm_hashes":{"image":[]},"mm_placeholders":{}}`, nil},
		"null":         {`null`, nil},
		"to the end":   {`{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":6,"length":1}]}}`, []Feature{{"image", "a", 6, 1}}},
		"the same twice": {`{"mm_hashes":{"image":["a","a"]},"mm_placeholders":{"image":[{"offset":3,"length":1},{"offset":1,"length":1}]}}`,
			[]Feature{{"image", "a", 1, 1}, {"image", "a", 3, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range []string{
				`{"token_ids":[1,2,3,4,5,6,7],"features":` + c.features + `}`,
				`{"features":` + c.features + `,"token_ids":[1,2,3,4,5,6,7]}`,
			} {
				got, err := decode(strings.NewReader(body), false, wide)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got[0].Features); diff != "" {
					t.Errorf("differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestDecodeAnswer_FeaturesRefused: items that cannot be placed exactly are an error. Dropped, the prompt would match
// prompts with other images (rule 3).
func TestDecodeAnswer_FeaturesRefused(t *testing.T) {
	const hashes, places = `"mm_hashes":{"image":["a"]}`, `"mm_placeholders":{"image":[{"offset":1,"length":2}]}`
	placed := func(place string) string { return `{` + hashes + `,"mm_placeholders":{"image":[` + place + `]}}` }
	for name, features := range map[string]string{
		"empty object":        `{}`,
		"renamed":             `{"hashes":{},"placeholders":{}}`,
		"no placeholders":     `{` + hashes + `}`,
		"no hashes":           `{` + places + `}`,
		"null placeholders":   `{` + hashes + `,"mm_placeholders":null}`,
		"fewer placeholders":  `{` + hashes + `,"mm_placeholders":{"image":[]}}`,
		"fewer hashes":        `{"mm_hashes":{"image":[]},` + places + `}`,
		"other modality":      `{"mm_hashes":{"audio":["a"]},` + places + `}`,
		"two mm_hashes":       `{` + hashes + `,` + hashes + `,` + places + `}`,
		"two placeholders":    `{` + hashes + `,` + places + `,` + places + `}`,
		"modality twice":      `{"mm_hashes":{"image":["a"],"image":["a"]},` + places + `}`,
		"long modality":       `{"mm_hashes":{"` + strings.Repeat("i", 200) + `":[]},"mm_placeholders":{}}`,
		"null hash":           `{"mm_hashes":{"image":[null]},` + places + `}`,
		"empty hash":          `{"mm_hashes":{"image":[""]},` + places + `}`,
		"hash no utf-8":       "{\"mm_hashes\":{\"image\":[\"\xff\"]}," + places + `}`,
		"array":               `[]`,
		"hashes array":        `{"mm_hashes":["a"],` + places + `}`,
		"past the end":        placed(`{"offset":2,"length":2}`),
		"offset past the end": placed(`{"offset":2147483647,"length":2147483647}`),
		"length 0":            placed(`{"offset":1,"length":0}`),
		"negative offset":     placed(`{"offset":-1,"length":1}`),
		"float length":        placed(`{"offset":1,"length":1.0}`),
		"no length":           placed(`{"offset":1}`),
		"two offsets":         placed(`{"offset":1,"offset":1,"length":1}`),
		"null place":          placed(`null`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(strings.NewReader(`{"token_ids":[1,2,3],"features":`+features+`}`), false, wide)
			if !errors.Is(err, ErrContract) {
				t.Errorf("got %v, want ErrContract", err)
			}
		})
	}
}
