package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// script is all that happens to an index: who its sources are, and one operation after the other. As a file it is JSON,
// and -model.replay plays it.
type script struct {
	// MaxOrphans is indexer.Options.MaxOrphanBlocks.
	MaxOrphans int
	Sources    []events.Source
	// Beside says that each source is written by a goroutine of its own, with readers beside them.
	Beside bool
	Ops    []op
}

// op is one step of one source, and what is asked after it.
type op struct {
	Source int
	step
	// Early operations are through before the first reader begins, where sources are written side by side.
	Early bool  `json:",omitempty"`
	Asks  []ask `json:",omitempty"`
}

// step is one thing that happens to a source.
type step struct {
	Kind stepKind `json:",omitempty"`
	// Batch applies; with stepReopen it is what the closed source still hears, too late.
	Batch events.Batch
}

type stepKind int

const (
	stepApply stepKind = iota
	stepReset
	stepGap
	stepReopen
	stepRestart // the index is another process's, and goes on from what this one saved
)

// ask is one prompt. With KeySize it comes as keys of blocks of that size instead of tokens.
type ask struct {
	indexer.Query
	KeySize int `json:",omitempty"`
}

// query is what the index is asked.
func (a ask) query() indexer.Query {
	q := a.Query
	if a.KeySize > 0 {
		q.Keys = indexer.Keys(q.Tokens, q.Features, a.KeySize, false, q.Namespace)
		q.KeySize, q.PromptTokens, q.Tokens = a.KeySize, len(q.Tokens), nil
	}
	return q
}

// asks are all the prompts of the script, in order.
func (s *script) asks() (out []ask) {
	for _, o := range s.Ops {
		out = append(out, o.Asks...)
	}
	return out
}

// write puts the script into a new file of folder dir.
func (s *script) write(dir string) (path string, err error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "kvscout-model-*.json")
	if err != nil {
		return "", err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return "", err
	}
	return filepath.Abs(f.Name())
}

func readScript(path string) (s script, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	for i, o := range s.Ops {
		if o.Source < 0 || o.Source >= len(s.Sources) {
			return s, fmt.Errorf("%s: operation %d is of source %d of %d", path, i, o.Source, len(s.Sources))
		}
	}
	return s, nil
}

// String lists the operations, a line for each event and each question.
func (s *script) String() string {
	var b strings.Builder
	for i, o := range s.Ops {
		name := fmt.Sprintf("%3d %s", i, s.Sources[o.Source].ID())
		if o.Kind != stepApply {
			fmt.Fprintf(&b, "%s: %s\n", name, [...]string{"", "reset", "gap", "close and open", "save and restore"}[o.Kind])
		}
		for _, e := range o.Batch.Events {
			fmt.Fprintf(&b, "%s: %s\n", name, describe(e))
		}
		for _, a := range o.Asks {
			fmt.Fprintf(&b, "    asked: %d tokens %v..., salt %q, adapter %q, keys of %d\n",
				len(a.Tokens), a.Tokens[:min(8, len(a.Tokens))], a.Salt, a.Adapter, a.KeySize)
		}
	}
	return b.String()
}

func describe(e events.Event) string {
	list := make([]string, 0, 8)
	for _, h := range e.Hashes[:min(8, len(e.Hashes))] {
		list = append(list, h.String())
	}
	kind := [...]string{events.Stored: "stores", events.Removed: "removes", events.Cleared: "clears", events.TierCleared: "clears tier"}
	out := fmt.Sprintf("%s %d blocks %s on %v", kind[e.Kind], len(e.Hashes), strings.Join(list, " "), e.Tier)
	if e.HasParent {
		out += " after " + e.Parent.String()
	}
	if e.HasGroup {
		out += fmt.Sprintf(" group %d", e.Group)
	}
	if len(e.Tokens) > 0 {
		out += fmt.Sprintf(" tokens %v... by %d", e.Tokens[:min(8, len(e.Tokens))], e.BlockSize)
	}
	return out
}
