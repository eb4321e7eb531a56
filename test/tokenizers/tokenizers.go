package tokenizers

import (
	"os"
	"path/filepath"
	"testing"
)

// Names are all of them: byte-level BPE, and SentencePiece-style BPE for Gemma 3 and Llama 2.
var Names = []string{"qwen3", "llama3", "llama3_1", "deepseek_v3", "gptoss", "gemma3", "llama2"}

// Env names a folder that has them, for a machine without npm. It is used instead of the fetched ones.
const Env = "KVSCOUT_TOKENIZERS"

// Dir is the folder with tokenizer.json and tokenizer_config.json of one of Names. It fails the test if there is none.
func Dir(t testing.TB, name string) string {
	t.Helper()
	all := os.Getenv(Env)
	if all == "" {
		all = filepath.Join(root(t), ".tools", "tokenizers")
	}
	dir := filepath.Join(all, name)
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatalf("no tokenizer %s: run `make .tools/tokenizers/.fetched`, or set %s: %v", name, Env, err)
	}
	return dir
}

// root is the folder of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}
