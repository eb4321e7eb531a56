package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Detail is what a server tells of one source beyond its counters.
type Detail struct {
	// Worker has the source among its own. Nil: the server lists no such worker.
	Worker *kvscoutv1.Worker
	// Scopes that it holds blocks in, the largest first, and how many more there are.
	Scopes        []*kvscoutv1.ScopeStats
	ScopesOmitted uint32
}

// detailLines is all there is to know of one source.
func (m *Model) detailLines() []string {
	name := fmt.Sprintf("%s rank %d", clean(m.of.worker), m.of.rank)
	s := m.found()
	if s == nil {
		return []string{"", "  " + warn.in(name+" is gone: the server has no such source any more."), "  esc goes back."}
	}
	w := m.width
	out := []string{strong.in(name) + "  " + stateTone(s.state).in(stateWord(s.state)) + " for " + brief(durationOf(s.stats.GetStateSeconds()))}
	add := func(label, text string) { out = append(out, labelled(label, text, w)...) }
	if s.stats.GetError() != "" {
		add("Fault", bad.in(clean(s.stats.GetError())))
	}
	add("Serves", fmt.Sprintf("%s on %s", orDash(s.model), orDash(clean(s.stats.GetEngine()))))
	add("Answers", s.bound+historyText(s.stats))
	add("Last batch", lastText(s.stats))
	add("Blocks", tiersText(s))
	out = append(out, streamLines(s, w)...)
	add("Accuracy", sourceAccuracy(s.stats.GetAccuracy()))
	return append(out, m.toldLines(w)...)
}

// streamLines is what came by the source's stream.
func streamLines(s *source, w int) []string {
	var out []string
	add := func(label, text string) { out = append(out, labelled(label, text, w)...) }
	st := s.stats
	add("Events", fmt.Sprintf("%s stored (%s), %s removed (%s), %s cleared", count(st.GetStoredEvents()), perSecond(s.stored),
		count(st.GetRemovedEvents()), perSecond(s.removed), count(st.GetClearedEvents())))
	add("Batches", fmt.Sprintf("%s applied, %s of them replayed, %s lost; %s (%s) on %s", count(st.GetBatches()),
		count(st.GetReplayedBatches()), count(st.GetLostBatches()), bytesText(st.GetBytes()), bytesRate(s.bytes),
		plural(st.GetConnections(), "connection")))
	add("Losses", fmt.Sprintf("%s, %s", plural(st.GetGaps(), "gap"), plural(st.GetResets(), "reset")))
	add("Orphans", fmt.Sprintf("%s waiting, %s dropped", plural(st.GetOrphansWaiting(), "store"), count(st.GetOrphansDropped())))
	add("Rejected", rejectedText(s))
	if st.GetEvictedBlocks() > 0 {
		add("Forgotten", warn.in(fmt.Sprintf("%s for memory (%s)", plural(st.GetEvictedBlocks(), "block"), perSecond(s.evicted))))
	}
	if st.GetReuseReports() > 0 {
		add("Reuse", plural(st.GetReuseReports(), "report"))
	}
	return out
}

func rejectedText(s *source) string {
	text := countsText(s.stats.GetRejected())
	if s.allRejects > 0 {
		text += " (" + perSecond(s.rejected) + ")"
	}
	return text
}

func historyText(s *kvscoutv1.SourceStats) string {
	if s.GetHistoryComplete() {
		return "; its whole history is known"
	}
	return "; its history is not complete"
}

func lastText(s *kvscoutv1.SourceStats) string {
	f := s.GetFreshness()
	if f == nil || f.LastSequence == nil {
		return "none yet"
	}
	return fmt.Sprintf("#%d, %s ago, visible %s after its arrival", f.GetLastSequence(), secondsText(f.AgeSeconds), secondsText(s.LagSeconds))
}

func sourceAccuracy(a *kvscoutv1.Accuracy) string {
	if a == nil {
		return "no outcomes reported"
	}
	text := fmt.Sprintf("%s: %s equal, %s over (%s tokens), %s under (%s tokens), %s wrong", plural(a.GetOutcomes(), "outcome"),
		count(a.GetEqual()), count(a.GetOver()), count(a.GetOverTokens()), count(a.GetUnder()), count(a.GetUnderTokens()), count(a.GetWrong()))
	if a.Recent != nil {
		text += ", of the recent ones " + percentText(a.GetRecent()) + " equal"
	}
	if a.GetFlagged() {
		text += "; " + bad.in("FLAGGED, likely cause: "+word(a.GetCause(), "ACCURACY_CAUSE_"))
	}
	return text
}

// toldLines is what was asked for this source alone.
func (m *Model) toldLines(w int) []string {
	switch {
	case m.opts.Detail == nil:
		return nil
	case m.detail == nil:
		return []string{faint.in("asking for labels, endpoints and scopes")}
	case m.detail.err != nil:
		return wrap(warn.in("labels, endpoints and scopes are not told: "+clean(m.detail.err.Error())), w)
	}
	var out []string
	add := func(label, text string) { out = append(out, labelled(label, text, w)...) }
	d := m.detail.detail
	if wk := d.Worker; wk != nil {
		add("Labels", labelsText(wk.GetSpec().GetLabels()))
		add("Role", roleText(wk.GetSpec().GetRole()))
		add("URL", orDash(clean(wk.GetUrl())))
		for _, src := range wk.GetSources() {
			if src.GetRank() == m.of.rank {
				add("Events at", orDash(clean(src.GetEventEndpoint())))
				add("Replay at", orDash(clean(src.GetReplayEndpoint())))
			}
		}
	}
	for i, sc := range d.Scopes {
		label := ""
		if i == 0 {
			label = "Scopes"
		}
		add(label, scopeText(sc))
	}
	if d.ScopesOmitted > 0 {
		add("", fmt.Sprintf("and %d more", d.ScopesOmitted))
	}
	return out
}

func roleText(r kvscoutv1.Role) string {
	if r == kvscoutv1.Role_ROLE_UNSPECIFIED {
		return "both"
	}
	return word(r, "ROLE_")
}

func labelsText(labels map[string]string) string {
	if len(labels) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, clean(k)+"="+clean(labels[k]))
	}
	return strings.Join(parts, ", ")
}

func scopeText(s *kvscoutv1.ScopeStats) string {
	text := fmt.Sprintf("%s: %s of %d tokens", clean(s.GetModel()), plural(s.GetBlocks(), "block"), s.GetBlockSize())
	if s.GetAdapter() != "" {
		text += ", adapter " + clean(s.GetAdapter())
	}
	if s.GetSalted() {
		text += ", with a salt"
	}
	if s.GetExtra() {
		text += ", in a namespace of the engine's"
	}
	return text
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
