package token

import (
	"encoding/json"
	"os"
	"testing"
)

func TestHostileScratch(t *testing.T) {
	var strs []string
	var want map[string][][]uint32
	rd := func(p string, v any) {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatal(err)
		}
	}
	rd("/tmp/tok/h/fuzz/strings.json", &strs)
	rd("/tmp/tok/h/ids-0.22.2.json", &want)
	for _, name := range []string{"qwen3", "llama3", "llama3_1", "deepseek_v3", "gptoss", "gemma3", "llama2"} {
		tk, err := Load("/tmp/tok/" + name + "/models")
		if err != nil {
			t.Fatal(name, err)
		}
		bad := 0
		for i, s := range strs {
			got, err := tk.Encode(nil, s, true)
			if err != nil {
				t.Error(err)
			}
			if !eq(got, want[name][i]) {
				if bad++; bad < 4 {
					t.Errorf("%s %q: %v, want %v", name, s, got, want[name][i])
				}
			}
		}
		t.Log(name, len(strs)-bad, "of", len(strs))
	}
}
