package dashboard

import (
	"slices"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// filter chooses sources: each word must be found. "!word" must not be. "state:gap" looks at one field only.
type filter []term

type term struct {
	text string // in lower case, "field:value" or a part of any value
	not  bool
}

func parseFilter(text string) filter {
	var f filter
	for _, w := range strings.Fields(strings.ToLower(text)) {
		t := term{text: w}
		if rest, ok := strings.CutPrefix(w, "!"); ok {
			t = term{rest, true}
		}
		if t.text != "" {
			f = append(f, t)
		}
	}
	return f
}

func (f filter) takes(s *source) bool {
	for _, t := range f {
		if s.matches(t.text) == t.not {
			return false
		}
	}
	return true
}

// fields that a filter may name, in the order of source.search.
var fields = [...]string{"worker", "model", "state", "engine", "bound", "flag"}

// matches looks for "field:part" in that field, and for anything else in all fields.
func (s *source) matches(text string) bool {
	if name, part, named := strings.Cut(text, ":"); named {
		if i := slices.Index(fields[:], name); i >= 0 {
			return strings.Contains(s.search[i], part)
		}
	}
	return slices.ContainsFunc(s.search[:], func(value string) bool { return strings.Contains(value, text) })
}

func searchOf(s *source) (out [len(fields)]string) {
	flag := ""
	if s.stats.GetAccuracy().GetFlagged() {
		flag = "flagged"
	}
	for i, text := range [...]string{s.id, s.model, stateWord(s.state), clean(s.stats.GetEngine()), s.bound, flag} {
		out[i] = strings.ToLower(text)
	}
	return out
}

func stateWord(s kvscoutv1.FreshnessState) string { return word(s, "FRESHNESS_STATE_") }

// worst orders states by how much they need a person; live comes last.
func worst(s kvscoutv1.FreshnessState) int {
	order := []kvscoutv1.FreshnessState{
		kvscoutv1.FreshnessState_FRESHNESS_STATE_GAP, kvscoutv1.FreshnessState_FRESHNESS_STATE_STALE,
		kvscoutv1.FreshnessState_FRESHNESS_STATE_CONNECTING, kvscoutv1.FreshnessState_FRESHNESS_STATE_UNKNOWN,
		kvscoutv1.FreshnessState_FRESHNESS_STATE_REPLAYING, kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE,
	}
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order)
}
