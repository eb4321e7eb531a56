package hub

import (
	_ "embed" // for classes.json
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed classes.json
var classesText []byte

// registry is what transformers knows of classes, by testdata/classes.py.
type registry struct {
	// Classes says of each class "file", "own:CLASS" or "other:CLASS".
	Classes map[string]string `json:"classes"`
	// Models is the class that transformers has for a model_type.
	Models map[string]string `json:"models"`
	// Incorrect are the model types of which the files are known to name a wrong class.
	Incorrect []string `json:"incorrect"`
}

var classes = sync.OnceValue(func() *registry {
	r := new(registry)
	if err := json.Unmarshal(classesText, r); err != nil {
		panic(fmt.Sprintf("classes.json: %v", err)) // it is part of the program
	}
	return r
})

// generic are the classes that stand for any tokenizer.json.
var generic = []string{"TokenizersBackend", "PythonBackend", "PreTrainedTokenizerFast", "MistralCommonBackend"}

const backend = "TokenizersBackend"

// vllmPlain are the model types for which vLLM takes the plain class, whatever the files say (vllm/tokenizers/registry.py,
// 0.32).
var vllmPlain = []string{"internlm2", "step3_vl", "step3p7", "unlimited-ocr", "unlimited_ocr"}

// classOf is the class that AutoTokenizer takes (transformers/models/auto/tokenization_auto.py, 5.19): named is what the
// tokenizer's configuration says, fallback what the model's says, modelType the model's type; each may be empty.
func classOf(named, fallback, modelType, modelName string) string {
	r := classes()
	if slices.Contains(vllmPlain, modelType) {
		return backend
	}
	hub := named
	if hub == "" {
		hub = fallback
	}
	registered := bare(r.Models[modelType])
	if hub != "" && registered != "" && registered != bare(hub) {
		if slices.Contains(generic, registered) {
			return backend
		}
		name := hub
		if slices.Contains(r.Incorrect, modelType) || slices.Contains(r.Incorrect, modelName) {
			name = registered
		}
		if found := r.lookup(name); found != "" && !slices.Contains(generic, found) {
			return found
		}
		return backend
	}
	if hub == "" {
		hub = registered
	}
	if found := r.lookup(bare(hub)); found != "" && !slices.Contains(generic, found) {
		return found
	}
	return backend
}

// bare is a class's name without "Fast".
func bare(name string) string { return strings.TrimSuffix(name, "Fast") }

// lookup is the class of that name, or with "Fast" behind it, as Classes has it; empty if there is none.
func (r *registry) lookup(name string) string {
	for _, n := range []string{name, name + "Fast"} {
		switch kind := r.Classes[n]; {
		case kind == "file":
			return backend
		case kind != "":
			_, class, _ := strings.Cut(kind, ":")
			return class
		}
	}
	return ""
}
