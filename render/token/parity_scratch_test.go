package token

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	for _, name := range []string{"qwen3", "llama3", "llama3_1", "deepseek_v3", "gptoss", "gemma3"} {
		began := time.Now()
		tk, err := Load("/tmp/tok/" + name + "/models")
		if err != nil {
			t.Fatal(name, err)
		}
		load := time.Since(began)
		var strs []string
		var want [][]uint32
		rd := func(p string, v any) {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, v); err != nil {
				t.Fatal(err)
			}
		}
		rd("/work/shared/oracle/tokens/strings.json", &strs)
		rd("/work/shared/oracle/tokens/ids-"+name+".json", &want)
		bad := 0
		for i, s := range strs {
			got, err := tk.Encode(nil, s, false)
			if err != nil {
				t.Error(err)
			}
			if !eq(got, want[i]) {
				if bad++; bad < 4 {
					t.Errorf("%s %q: %v, want %v", name, s, got, want[i])
				}
			}
		}
		t.Log(name, load, tk.Size()>>20, "MB", len(strs)-bad, "of", len(strs))
	}
}

func eq(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
