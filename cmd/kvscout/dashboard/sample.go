package dashboard

import (
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/latency"
)

const (
	// maxHistory bounds the points that are drawn.
	maxHistory = 120
	// window is how many answers back latencies are taken over.
	window = 10
)

// rate is what happened a second, if that is known.
type rate struct {
	v     float64
	known bool
}

func (r rate) plus(o rate) rate { return rate{r.v + o.v, r.known || o.known} }

// sourceKey names a source as the server does. Never shown: it is not cleaned.
type sourceKey struct {
	worker string
	rank   uint32
}

// source is one event stream in one answer.
type source struct {
	sourceKey
	stats      *kvscoutv1.SourceStats
	id, model  string // cleaned
	state      kvscoutv1.FreshnessState
	blocks     [len(tiers)]uint64
	bound      string              // why answers are not exact; "exact"
	search     [len(fields)]string // what filters look at, in lower case
	stored     rate                // events
	removed    rate                // events
	rejected   rate
	evicted    rate
	bytes      rate
	allRejects uint64
}

// tiers from the fastest to the slowest.
var tiers = [...]kvscoutv1.Tier{
	kvscoutv1.Tier_TIER_DEVICE, kvscoutv1.Tier_TIER_HOST, kvscoutv1.Tier_TIER_DISK, kvscoutv1.Tier_TIER_SHARED,
	kvscoutv1.Tier_TIER_UNKNOWN,
}

// sample is one answer of the server, beside the one before it.
type sample struct {
	stats   *kvscoutv1.Stats
	at      time.Time // of its arrival
	uptime  time.Duration
	sources []source
	all     source // all sources together; it has neither key nor state
	idWidth int    // of the widest id
	states  map[kvscoutv1.FreshnessState]int
	rejects map[string]uint64 // of all sources, by reason
	latency latency.Counts
	// scores are requests answered without an error, errors those that were not.
	scores, errors rate
	history        []point // ends with this sample
}

// point is what is kept of a sample for later ones.
type point struct {
	uptime         time.Duration
	latency        latency.Counts
	scores, errors float64
	p99            time.Duration // of the time since the point before
}

// next reads an answer; prev may be nil.
func next(prev *sample, stats *kvscoutv1.Stats, at time.Time) *sample {
	s := &sample{
		stats: stats, at: at, uptime: stats.GetUptime().AsDuration(), states: make(map[kvscoutv1.FreshnessState]int), rejects: make(map[string]uint64),
		latency: LatencyCounts(stats.GetScore().GetLatency()),
	}
	var passed float64 // seconds at the server
	if prev != nil && s.uptime > prev.uptime {
		passed = (s.uptime - prev.uptime).Seconds()
	}
	before := make(map[sourceKey]*kvscoutv1.SourceStats)
	if passed > 0 {
		for i := range prev.sources {
			before[prev.sources[i].sourceKey] = prev.sources[i].stats
		}
	}
	s.sources = make([]source, 0, len(stats.GetSources()))
	for _, st := range stats.GetSources() {
		src := readSource(st)
		if old := before[src.sourceKey]; old != nil {
			src.since(old, passed)
		}
		s.add(src)
	}
	s.follow(prev, passed)
	return s
}

func (s *sample) add(src source) {
	s.sources = append(s.sources, src)
	s.states[src.state]++
	s.idWidth = max(s.idWidth, width(src.id))
	a := &s.all
	a.stored, a.removed, a.rejected = a.stored.plus(src.stored), a.removed.plus(src.removed), a.rejected.plus(src.rejected)
	a.evicted, a.bytes = a.evicted.plus(src.evicted), a.bytes.plus(src.bytes)
	a.allRejects += src.allRejects
	for t, n := range src.blocks {
		a.blocks[t] += n
	}
	for reason, n := range src.stats.GetRejected() {
		s.rejects[reason] += n
	}
}

// follow adds the rates of calls, and the point of this sample to the history.
func (s *sample) follow(prev *sample, passed float64) {
	p := point{uptime: s.uptime, latency: s.latency}
	if passed > 0 {
		s.history = prev.history
		since := s.latency.Sub(prev.latency)
		p.p99 = since.Quantile(0.99)
		s.scores = rate{float64(since.Total()) / passed, true}
		s.errors = over(total(s.stats.GetScore().GetErrors()), total(prev.stats.GetScore().GetErrors()), passed)
		p.scores, p.errors = s.scores.v, s.errors.v
	}
	if len(s.history) >= maxHistory {
		s.history = s.history[len(s.history)-maxHistory+1:]
	}
	s.history = append(s.history[:len(s.history):len(s.history)], p) // a paused view may still have the old one
}

// recent is how long calls took lately, and within which time; all since the start where there is no earlier answer.
func (s *sample) recent() (latency.Counts, time.Duration) {
	first := s.history[max(0, len(s.history)-1-window)]
	if first.uptime == s.uptime {
		return s.latency, s.uptime
	}
	return s.latency.Sub(first.latency), s.uptime - first.uptime
}

func readSource(st *kvscoutv1.SourceStats) source {
	src := source{
		sourceKey: sourceKey{st.GetWorkerId(), st.GetRank()}, stats: st, id: clean(st.GetWorkerId()), model: clean(st.GetModel()),
		state: st.GetFreshness().GetState(), bound: boundText(st.GetBound()), allRejects: total(st.GetRejected()),
	}
	for _, t := range st.GetTiers() {
		for i := range tiers {
			if tiers[i] == t.GetTier() {
				src.blocks[i] += t.GetBlocks()
			}
		}
	}
	src.search = searchOf(&src)
	return src
}

// since sets the rates of a source by what it was before.
func (s *source) since(old *kvscoutv1.SourceStats, passed float64) {
	now := s.stats
	s.stored = over(now.GetStoredEvents(), old.GetStoredEvents(), passed)
	s.removed = over(now.GetRemovedEvents(), old.GetRemovedEvents(), passed)
	s.rejected = over(s.allRejects, total(old.GetRejected()), passed)
	s.evicted = over(now.GetEvictedBlocks(), old.GetEvictedBlocks(), passed)
	s.bytes = over(now.GetBytes(), old.GetBytes(), passed)
}

// over is the rate of a counter; one that fell began anew.
func over(now, old uint64, passed float64) rate {
	if now < old {
		old = 0
	}
	return rate{float64(now-old) / passed, true}
}

func total(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

func boundText(b *kvscoutv1.Bound) string {
	if b == nil {
		return "-"
	}
	text := word(b.GetKind(), "BOUND_KIND_")
	for i, r := range b.GetReasons() {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		text += sep + word(r, "BOUND_REASON_")
	}
	return clean(text)
}
