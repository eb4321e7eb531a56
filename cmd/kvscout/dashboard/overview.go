package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// labelled puts a label before a text; what does not fit goes on below.
func labelled(label, text string, w int) []string {
	const labelWidth = 12
	var out []string
	for i, part := range wrap(text, w-labelWidth) {
		if i > 0 {
			label = ""
		}
		out = append(out, strong.in(fit(label, labelWidth, false))+part)
	}
	return out
}

// overviewLines is the state of the whole service, and who needs a person.
func overviewLines(s *sample, w int) []string {
	var out []string
	add := func(label, text string) { out = append(out, labelled(label, text, w)...) }
	add("Service", serviceText(s))
	add("Sources", sourcesText(s))
	add("Index", indexText(s.stats))
	add("Blocks", tiersText(&s.all))
	add("Churn", churnText(s))
	recent, span := s.recent()
	score := s.stats.GetScore()
	add("Scores", fmt.Sprintf("%s answered, %s errors, %d of %d calls under way", perSecond(s.scores), perSecond(s.errors),
		score.GetInFlight(), score.GetMaxInFlight()))
	if recent.Total() > 0 {
		add("Latency", fmt.Sprintf("p50 %s, p99 %s over %s", brief(recent.Quantile(0.5)), brief(recent.Quantile(0.99)), brief(span)))
	} else {
		add("Latency", "- (no answer over "+brief(span)+")")
	}
	add("Accuracy", accuracyText(s))
	add("Rejected", perSecond(s.all.rejected)+"; "+countsText(s.rejects))
	out = append(out, otherLines(s.stats, w)...)
	out = append(out, "")
	return append(out, attention(s, w)...)
}

// maxNamed is how many sources Readiness names at most.
const maxNamed = 256

func serviceText(s *sample) string {
	r := s.stats.GetReadiness()
	state := word(r.GetState(), "SERVICE_STATE_")
	t := good
	if r.GetState() != kvscoutv1.ServiceState_SERVICE_STATE_READY {
		t = warn
	}
	text := t.in(state)
	for _, list := range []struct {
		what string
		ids  []string
	}{{"waited for", r.GetWaiting()}, {"not live", r.GetDegraded()}, {"flagged", r.GetFlagged()}} {
		switch n := len(list.ids); {
		case n >= maxNamed:
			text += fmt.Sprintf(", %d or more %s", n, list.what)
		case n > 0:
			text += fmt.Sprintf(", %d %s", n, list.what)
		}
	}
	return text
}

func sourcesText(s *sample) string {
	states := make([]kvscoutv1.FreshnessState, 0, len(s.states))
	for st := range s.states {
		states = append(states, st)
	}
	slices.SortFunc(states, func(a, b kvscoutv1.FreshnessState) int { return cmp.Compare(worst(b), worst(a)) })
	parts := make([]string, 0, len(states))
	for _, st := range states {
		parts = append(parts, stateTone(st).in(fmt.Sprintf("%d %s", s.states[st], stateWord(st))))
	}
	if len(parts) == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d: %s", len(s.sources), strings.Join(parts, ", "))
	if lag, id := worstLag(s); id != "" {
		text += fmt.Sprintf("; largest lag %s (%s)", brief(durationOf(lag)), id)
	}
	return text
}

// worstLag is the largest time from arrival to being visible, of the batches that came last.
func worstLag(s *sample) (lag float64, id string) {
	for i := range s.sources {
		if l := s.sources[i].stats.LagSeconds; l != nil && (id == "" || *l > lag) {
			lag, id = *l, s.sources[i].name()
		}
	}
	return lag, id
}

// name is worker/rank.
func (s *source) name() string { return fmt.Sprintf("%s/%d", s.id, s.rank) }

func indexText(s *kvscoutv1.Stats) string {
	text := fmt.Sprintf("%s in %s, held %s times, %s engine hashes, %s", plural(s.GetBlocks(), "block"), plural(s.GetScopes(), "scope"),
		count(s.GetHolderBlocks()), count(s.GetHandles()), bytesText(s.GetIndexBytes()))
	if limit := s.GetMaxIndexBytes(); limit > 0 {
		text += fmt.Sprintf(" of %s (%s)", bytesText(limit), percentText(float64(s.GetIndexBytes())/float64(limit)))
	}
	return text
}

func tiersText(s *source) string {
	var parts []string
	for i, n := range s.blocks {
		if n > 0 {
			parts = append(parts, word(tiers[i], "TIER_")+" "+count(n))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func churnText(s *sample) string {
	text := fmt.Sprintf("%s stored, %s removed (events), %s received", perSecond(s.all.stored), perSecond(s.all.removed), bytesRate(s.all.bytes))
	if s.all.evicted.v > 0 {
		text += ", " + warn.in(perSecond(s.all.evicted)+" blocks forgotten for memory")
	}
	return text
}

func bytesRate(r rate) string {
	if !r.known {
		return "-"
	}
	return bytesText(uint64(r.v)) + "/s"
}

// accuracyText sums up the outcomes of all sources.
func accuracyText(s *sample) string {
	var outcomes, equal, wrong, flagged uint64
	for i := range s.sources {
		a := s.sources[i].stats.GetAccuracy()
		outcomes, equal, wrong = outcomes+a.GetOutcomes(), equal+a.GetEqual(), wrong+a.GetWrong()
		if a.GetFlagged() {
			flagged++
		}
	}
	if outcomes == 0 {
		return "no outcomes reported"
	}
	text := fmt.Sprintf("%s of %s equal, %d wrong", percentText(float64(equal)/float64(outcomes)), plural(outcomes, "outcome"), wrong)
	if flagged > 0 {
		text += ", " + bad.in(plural(flagged, "source")+" FLAGGED")
	}
	return text
}

// otherLines are about parts that not every server has.
func otherLines(s *kvscoutv1.Stats, w int) []string {
	var out []string
	add := func(label, text string) { out = append(out, labelled(label, text, w)...) }
	if log := s.GetLog(); log != nil {
		text := fmt.Sprintf("%s waiting to be stored, %d records to read", bytesText(log.GetIngest().GetWaitingBytes()), log.GetReplica().GetPending())
		if out := log.GetUnreached().AsDuration(); out > 0 {
			text += ", " + bad.in("out of reach for "+brief(out))
		}
		if log.GetReplica().GetBehind() {
			text += ", " + bad.in("behind")
		}
		add("Log", text)
	}
	if d := s.GetDiscovery(); d != nil {
		for _, from := range d.GetDiscoverers() {
			if from.GetError() != "" {
				add("Discovery", bad.in("failed")+": "+clean(from.GetName())+": "+clean(from.GetError()))
			}
		}
		if n := len(d.GetPending()); n > 0 {
			add("Discovery", warn.in(plural(uint64(n), "worker")+" cannot be listened to yet")+"; "+clean(d.GetPending()[0].GetWorkerId())+": "+clean(d.GetPending()[0].GetReason()))
		}
	}
	for _, r := range s.GetRenderers() {
		if !r.GetReady() {
			add("Renderer", bad.in("not ready")+": "+clean(r.GetRenderer())+": "+clean(r.GetError()))
		}
	}
	return out
}

// maxAttention bounds the list of sources that need a person; the table has all of them.
const maxAttention = 50

// attention lists the sources that are not live or flagged, the worst first.
func attention(s *sample, w int) []string {
	var list []*source
	for i := range s.sources {
		src := &s.sources[i]
		if src.state != kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE || src.stats.GetAccuracy().GetFlagged() {
			list = append(list, src)
		}
	}
	if len(list) == 0 {
		if len(s.sources) == 0 {
			return nil
		}
		return []string{"Every source is live, none is flagged."}
	}
	slices.SortStableFunc(list, func(a, b *source) int { return cmp.Compare(worst(a.state), worst(b.state)) })
	out := []string{strong.in(fmt.Sprintf("Not live or flagged (%d)", len(list)))}
	for i, src := range list {
		if i == maxAttention {
			out = append(out, fmt.Sprintf("  and %d more, see Sources", len(list)-i))
			break
		}
		line := "  " + fit(src.name(), min(s.idWidth+3, w/3), false) + " " + stateTone(src.state).in(fit(stateWord(src.state), 10, false)) +
			" for " + brief(durationOf(src.stats.GetStateSeconds()))
		if src.stats.GetAccuracy().GetFlagged() {
			line += ", " + bad.in("FLAGGED") + ": " + word(src.stats.GetAccuracy().GetCause(), "ACCURACY_CAUSE_")
		}
		if why := src.stats.GetError(); why != "" {
			line += ": " + clean(why)
		}
		out = append(out, line)
	}
	return out
}
