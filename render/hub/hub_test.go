package hub

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/kvscout/kvscout/render/token"
	"github.com/kvscout/kvscout/test/tokenizers"
)

// answer is what transformers 5.19 made of a directory (testdata/cases.py): per text its ids without and with special
// tokens.
type answer struct {
	Class    string            `json:"class"`
	Specials map[string]string `json:"specials"`
	IDs      [][2][]uint32     `json:"ids"`
}

// unpack reads a JSON file of testdata.
func unpack(t testing.TB, name string, to any) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := json.NewDecoder(in).Decode(to); err != nil {
		t.Fatal(err)
	}
}

// check opens files and compares.
func check(t *testing.T, files Files, texts []string, want answer) {
	t.Helper()
	m, err := Open(files)
	if err != nil {
		t.Error(err)
		return
	}
	got := make(map[string]string)
	for _, s := range m.Specials {
		got[s.Name] = s.Text
	}
	if diff := cmp.Diff(want.Specials, got); diff != "" || m.Class != want.Class {
		t.Errorf("class %s, want %s; special tokens (-transformers +got):\n%s", m.Class, want.Class, diff)
	}
	tok, err := token.Parse(m.Tokenizer)
	if err != nil {
		t.Error(err)
		return
	}
	for i, text := range texts {
		for k, special := range []bool{false, true} {
			ids, err := tok.Encode(nil, text, special)
			if err != nil || !slices.Equal(ids, want.IDs[i][k]) {
				t.Errorf("%q, special %v: got %v, %v, transformers %v", text, special, ids, err, want.IDs[i][k])
				return
			}
		}
	}
}

// TestOpen_Classes: small models of every class and configuration become what transformers makes of them, or are
// refused.
func TestOpen_Classes(t *testing.T) {
	var oracle struct {
		Texts []string `json:"texts"`
		Cases []struct {
			Name  string                     `json:"name"`
			Files map[string]json.RawMessage `json:"files"`
			answer
		} `json:"cases"`
	}
	unpack(t, "cases.json.zst", &oracle)
	if len(oracle.Cases) < 100 {
		t.Fatalf("%d cases", len(oracle.Cases))
	}
	for _, c := range oracle.Cases {
		t.Run(c.Name, func(t *testing.T) {
			files := make(Files)
			for name, text := range c.Files {
				files[name] = text
			}
			check(t, files, oracle.Texts, c.answer)
		})
	}
}

// TestOpen_RealTokenizers: the files of real models.
func TestOpen_RealTokenizers(t *testing.T) {
	var oracle struct {
		Texts  []string          `json:"texts"`
		Models map[string]answer `json:"models"`
	}
	unpack(t, "ids.json.zst", &oracle)
	for _, name := range tokenizers.Names {
		t.Run(name, func(t *testing.T) {
			files, err := Read(tokenizers.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			check(t, files, oracle.Texts, oracle.Models[name])
		})
	}
}

// minimal is a tokenizer.json that loads.
const minimal = `{"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,
 "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`

func TestOpen_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		files Files
		want  error
	}{
		"tekken":              {Files{fileTokenizer: []byte(minimal), fileTekken: []byte("{}")}, ErrUnsupported},
		"own code":            {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{"auto_map":{"AutoTokenizer":["x.Y",null]}}`)}, ErrUnsupported},
		"own code, old form":  {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{"auto_map":["x.Y",null]}`)}, ErrUnsupported},
		"class of its own":    {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{"tokenizer_class":"BertTokenizer"}`)}, ErrUnsupported},
		"splits special":      {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{"split_special_tokens":true}`)}, ErrUnsupported},
		"Unigram as Llama":    {Files{fileTokenizer: []byte(`{"model":{"type":"Unigram"}}`), fileConfig: []byte(`{"tokenizer_class":"LlamaTokenizer"}`)}, ErrUnsupported},
		"config no JSON":      {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{`)}, ErrBadFile},
		"config no object":    {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`[]`)}, ErrBadFile},
		"model no object":     {Files{fileTokenizer: []byte(minimal), fileModel: []byte(`5`)}, ErrBadFile},
		"tokenizer no object": {Files{fileTokenizer: []byte(`[]`)}, ErrBadFile},
		"no object, rebuilt":  {Files{fileTokenizer: []byte(`[]`), fileConfig: []byte(`{"tokenizer_class":"Qwen2Tokenizer"}`)}, ErrBadFile},
		"no model, rebuilt":   {Files{fileTokenizer: []byte(`{"model":5}`), fileConfig: []byte(`{"tokenizer_class":"Qwen2Tokenizer"}`)}, ErrBadFile},
		"decoder no object":   {Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{"added_tokens_decoder":[]}`)}, ErrBadFile},
	} {
		if m, err := Open(c.files); !errors.Is(err, c.want) || m != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Open(Files{fileTokenizer: []byte(minimal), fileConfig: []byte(`{"auto_map":{"AutoTokenizer":null,"AutoModel":"x"}}`)}); err != nil {
		t.Errorf("code of another part: %v", err)
	}
}

// TestOpen_Templates: files go before the configuration, and one template of several is chosen by name.
func TestOpen_Templates(t *testing.T) {
	config := []byte(`{"chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"T"}]}`)
	for name, c := range map[string]struct {
		files Files
		want  []Template
	}{
		"none":        {Files{}, nil},
		"string":      {Files{fileConfig: []byte(`{"chat_template":"x\r\ny"}`)}, []Template{{"", "x\r\ny"}}},
		"list":        {Files{fileConfig: config}, []Template{{"default", "D"}, {"tool_use", "T"}}},
		"file":        {Files{fileConfig: config, fileTemplate: []byte("F\r\nG\rH\n")}, []Template{{"", "F\nG\nH\n"}}},
		"more files":  {Files{fileTemplate: []byte("F"), dirTemplates + "/rag.jinja": []byte("R")}, []Template{{"default", "F"}, {"rag", "R"}}},
		"only others": {Files{fileConfig: config, dirTemplates + "/rag.jinja": []byte("R")}, []Template{{"rag", "R"}}},
	} {
		c.files[fileTokenizer] = []byte(minimal)
		m, err := Open(c.files)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, m.Templates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRead: what is read is bounded, and what is missing is said. Stamp and digest follow the files.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(dir); !errors.Is(err, ErrBadFile) || !errors.Is(err, errMissing) {
		t.Errorf("empty directory: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	write(fileTokenizer, minimal)
	write(dirTemplates+"/x.jinja", "X")
	write("README.md", "no part of it")
	files, err := Read(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("read %d files, %v", len(files), err)
	}
	stamp, digest := Stamp(dir), files.Digest("vllm")
	if Stamp(dir) != stamp || files.Digest("sglang") == digest {
		t.Error("stamp changes by itself, or digest does not see settings")
	}
	write(fileTemplate, "T")
	if again, err := Read(dir); err != nil || Stamp(dir) == stamp || again.Digest("vllm") == digest {
		t.Errorf("a new file is not seen: %v", err)
	}
	stamp = Stamp(dir)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(dir, fileTemplate), later, later); err != nil || Stamp(dir) == stamp {
		t.Errorf("a touched file is not seen: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, fileTemplate), maxOtherFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, ErrBadFile) {
		t.Errorf("a file over the limit: %v", err)
	}
}
