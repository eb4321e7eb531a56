package discover

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// Roles of a worker in a disaggregated deployment. "" is not stated.
const (
	RolePrefill = "prefill"
	RoleDecode  = "decode"
	RoleBoth    = "both"
)

// Worker is what is known of one worker. The zero value of a field means "not stated".
type Worker struct {
	// ID is the id that the EPP uses, often "address:port".
	ID string
	// URL is the base of the worker's serving port, http://host:port. It is asked for what is not stated.
	URL string
	// Role is one of the Role constants. While none is stated, the labels of RoleOf tell it.
	Role   string
	Labels map[string]string
	// Model is the served model name, Aliases its other names, Adapters the LoRA adapters served.
	Model             string
	Aliases, Adapters []string
	// Fingerprint identifies the configuration by which the worker turns requests into tokens (TensorRT-LLM's
	// render_fingerprint).
	Fingerprint string
	// Unready is why its orchestrator says that it takes no requests now, "" while nobody says so. Meanwhile it is told
	// unhealthy.
	Unready string
	// Sources has one entry for each rank. A single one without an endpoint speaks of every rank.
	Sources []events.Source
	// Known is what the worker is known as already, in the place of its first answer; nil without. Behind another pointer it
	// replaces what the worker has answered since.
	Known *Worker
}

// Equal says whether o states the same.
func (w Worker) Equal(o Worker) bool { return reflect.DeepEqual(w, o) }

// roleLabels are the labels that tell a role, those first go first: ours, llm-d's, and a plain one.
var roleLabels = []string{"kvscout.io/role", "llm-d.ai/role", "role"}

// roleWords are the values that llm-d, SGLang, vLLM and people use.
var roleWords = map[string]string{
	"prefill": RolePrefill, "decode": RoleDecode, "both": RoleBoth, "prefill-decode": RoleBoth,
	"kv_producer": RolePrefill, "kv_consumer": RoleDecode, "kv_both": RoleBoth,
}

// RoleOf is the role that labels tell, "" if none does.
func RoleOf(labels map[string]string) string {
	for _, key := range roleLabels {
		if role := roleWords[labels[key]]; role != "" {
			return role
		}
	}
	return ""
}

// fill returns w with what it does not state taken from o (invariant 2).
func (w Worker) fill(o Worker) Worker {
	w.URL = cmp.Or(w.URL, o.URL)
	w.Role = cmp.Or(w.Role, o.Role)
	w.Model = cmp.Or(w.Model, o.Model)
	w.Fingerprint = cmp.Or(w.Fingerprint, o.Fingerprint)
	w.Unready = cmp.Or(w.Unready, o.Unready)
	if len(w.Aliases) == 0 {
		w.Aliases = o.Aliases
	}
	if len(w.Adapters) == 0 {
		w.Adapters = o.Adapters
	}
	if len(o.Labels) > 0 {
		all := maps.Clone(o.Labels)
		maps.Copy(all, w.Labels)
		w.Labels = all
	}
	w.Sources = fillSources(w.Sources, o.Sources)
	return w
}

// fillSources fills each rank of have from the same rank of more. Ranks are those of have, unless it names none, or
// speaks of every rank.
func fillSources(have, more []events.Source) []events.Source {
	switch {
	case len(more) == 0:
		return have
	case len(have) == 0:
		return slices.Clone(more)
	case template(have):
		out := slices.Clone(more)
		for i := range out {
			rank := out[i].Rank
			out[i] = fillSource(have[0], out[i])
			out[i].Rank = rank
		}
		return out
	}
	out := slices.Clone(have)
	for i := range out {
		if template(more) {
			out[i] = fillSource(out[i], more[0])
		} else if j := slices.IndexFunc(more, func(s events.Source) bool { return s.Rank == out[i].Rank }); j >= 0 {
			out[i] = fillSource(out[i], more[j])
		}
	}
	return out
}

// template says whether the sources speak of every rank: one, that says nothing of where its events are.
func template(sources []events.Source) bool {
	return len(sources) == 1 && sources[0].Rank == 0 && sources[0].Events == ""
}

// fillSource takes what s does not state from o. Endpoints and topic belong together: they come from one of them.
func fillSource(s, o events.Source) events.Source {
	if s.Events == "" {
		s.Events, s.Topic = o.Events, cmp.Or(s.Topic, o.Topic)
	}
	s.Replay = cmp.Or(s.Replay, o.Replay)
	s.Engine = cmp.Or(s.Engine, o.Engine)
	s.Version = cmp.Or(s.Version, o.Version)
	s.Model = cmp.Or(s.Model, o.Model)
	s.BlockSize = cmp.Or(s.BlockSize, o.BlockSize)
	s.HashFormat = cmp.Or(s.HashFormat, o.HashFormat)
	s.SpeculativeEAGLE = s.SpeculativeEAGLE || o.SpeculativeEAGLE
	s.PairKeys = s.PairKeys || o.PairKeys
	s.ReuseReports = s.ReuseReports || o.ReuseReports
	if len(s.Unpublished) == 0 {
		s.Unpublished = o.Unpublished
	}
	return s
}

// finish gives the sources the worker's name and model, and the role that labels tell. It says why the worker cannot be
// listened to yet, "" if it can.
func (w *Worker) finish() (missing string) {
	w.Role = cmp.Or(w.Role, RoleOf(w.Labels))
	w.Sources = slices.Clone(w.Sources)
	for i := range w.Sources {
		s := &w.Sources[i]
		w.Model = cmp.Or(w.Model, s.Model)
		s.Worker = w.ID
	}
	switch {
	case len(w.Sources) == 0 && w.URL == "":
		return "no event source is stated"
	case len(w.Sources) == 0 || w.URL != "" && template(w.Sources):
		return "the worker has not told its event sources"
	case w.Model == "":
		return "the model is not known"
	}
	for i := range w.Sources {
		w.Sources[i].Model = w.Model
		if w.Sources[i].Engine == "" {
			return "the engine is not known"
		}
	}
	return ""
}
