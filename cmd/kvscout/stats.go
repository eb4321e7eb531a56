package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kvscout/kvscout/cmd/kvscout/dashboard"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// statsOptions are the settings of `kvscout stats`.
type statsOptions struct {
	clientOptions
	watch time.Duration
	count int
	json  bool
}

func newStats() *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the counters of a server",
		Long: `Show the counters of a server: the size of the index, what each event stream did, what was rejected and why.

Columns: LAG is the time from a batch's arrival to its being visible to scores; STORED, REMOVED and CLEARED count events,
BLOCKS what is held now by tier; GAPS are holes in the stream that no replay filled, LOST the batches in them, RESETS the
engine's restarts; WAITING are stores whose parent is not known yet, GIVEN UP those dropped since too many waited, EVICTED what the
index forgot at its bound of memory; ANSWERS says whether scores are exact, and why not; REJECTED what was not applied, by reason.

With --watch they are shown again at each interval until the command is interrupted.`,
		Example: `  kvscout stats
  kvscout stats --watch
  kvscout stats --watch=5s --json | jq .stats.blocks`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.watch == 0 || len(args) != 1 {
				return noArgs(cmd, args)
			}
			var err error // "--watch 5s": the interval of a flag that may stand alone
			if o.watch, err = time.ParseDuration(args[0]); err != nil {
				return misuse("watch: %w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runStats(cmd, &o) },
	}
	f := cmd.Flags()
	o.register(f)
	f.DurationVar(&o.watch, "watch", 0, "show the counters again after each `INTERVAL`, such as 500ms; 1s when none is given (default 0: show them once)")
	f.Lookup("watch").NoOptDefVal = "1s"
	f.IntVar(&o.count, "count", 0, "with --watch, how often the counters are shown; 0 is until interrupted")
	f.BoolVar(&o.json, "json", false, "print each answer's JSON, one a line, and nothing else")
	return cmd
}

func runStats(cmd *cobra.Command, o *statsOptions) error {
	if o.watch < 0 || o.count < 0 {
		return misuse("watch and count must not be negative")
	}
	if o.count > 0 && o.watch == 0 {
		return misuse("count belongs to watch")
	}
	if o.watch > 0 {
		return watchStats(cmd, o)
	}
	res, err := call(cmd.Context(), &o.clientOptions, &kvscoutv1.GetStatsRequest{}, (*client.Client).GetStats)
	if err != nil {
		return err
	}
	if o.json {
		return protoJSON(cmd.OutOrStdout(), res)
	}
	return printStats(cmd.OutOrStdout(), res.GetStats())
}

// watchStats shows the counters until o.count, the user or the server ends it.
func watchStats(cmd *cobra.Command, o *statsOptions) error {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	stream, err := c.StreamStats(ctx, &kvscoutv1.StreamStatsRequest{Interval: durationpb.New(o.watch)})
	if err != nil {
		return err
	}
	defer stream.Close()
	out := cmd.OutOrStdout()
	for n := 1; stream.Receive(); n++ {
		if o.json {
			err = protoJSON(out, stream.Msg())
		} else {
			if isTerminal(out) {
				fmt.Fprint(out, "\x1b[H\x1b[2J") // home, clear
			} else if n > 1 {
				fmt.Fprintln(out)
			}
			err = printStats(out, stream.Msg().GetStats())
		}
		if err != nil || n == o.count {
			cancel() // so that Close need not wait for the server
			return err
		}
	}
	if cmd.Context().Err() != nil {
		return nil // the user has seen enough
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return errors.New("the server ended the stream")
}

func printStats(w io.Writer, s *kvscoutv1.Stats) error {
	fmt.Fprintf(w, "index version %d, up %v\n", s.GetIndexVersion(), s.GetUptime().AsDuration().Round(time.Second))
	fmt.Fprintf(w, "index: %d blocks, %d held by workers, %d scopes, %d engine hashes, %d stores waiting",
		s.GetBlocks(), s.GetHolderBlocks(), s.GetScopes(), s.GetHandles(), s.GetOrphansWaiting())
	if s.GetTopicMismatches() > 0 {
		fmt.Fprintf(w, ", %d messages of unknown topics", s.GetTopicMismatches())
	}
	if s.GetRefusedConnections() > 0 {
		fmt.Fprintf(w, ", %d connections refused", s.GetRefusedConnections())
	}
	fmt.Fprintf(w, "\nmemory of the index: %d bytes", s.GetIndexBytes())
	if s.GetMaxIndexBytes() > 0 {
		fmt.Fprintf(w, " of %d", s.GetMaxIndexBytes())
	}
	if s.GetRetiredBytes() > 0 {
		fmt.Fprintf(w, ", %d of them wait for lookups to end", s.GetRetiredBytes())
	}
	fmt.Fprintf(w, "\nscores: %d requests, errors: %s\n", s.GetScore().GetRequests(), counts(s.GetScore().GetErrors()))
	printLatency(w, s.GetScore())
	if c := s.GetScore(); c.GetRouted() > 0 {
		fmt.Fprintf(w, "routed: %d credited, %d waiting, %d confirmed, %d expired, %d dropped\n",
			c.GetRouted(), c.GetRoutedWaiting(), c.GetRoutedConfirmed(), c.GetRoutedExpired(), c.GetRoutedDropped())
	}
	printAccess(w, s.GetAccess())
	printDiscovery(w, s.GetDiscovery())
	if s.GetSnapshot() != nil {
		printSnapshot(w, s.GetSnapshot())
	}
	printLog(w, s.GetLog())
	if err := printRenderers(w, s.GetRenderers()); err != nil {
		return err
	}
	printReadiness(w, s.GetReadiness())
	if err := printSources(w, s.GetSources()); err != nil {
		return err
	}
	for _, src := range s.GetSources() {
		if src.GetAccuracy() != nil {
			fmt.Fprintf(w, "accuracy: %s rank %d, %s\n", dashboard.Printable(src.GetWorkerId()), src.GetRank(), accuracyWords(src.GetAccuracy()))
		}
	}
	return nil
}

// printLatency tells how long answers took since the server started.
func printLatency(w io.Writer, s *kvscoutv1.ScoreStats) {
	if c := dashboard.LatencyCounts(s.GetLatency()); c.Total() > 0 {
		fmt.Fprintf(w, "latency: p50 %s, p99 %s, mean %s of %d answers; %d of %d calls under way, %d waiting for their turn\n", brief(c.Quantile(0.5)),
			brief(c.Quantile(0.99)), brief(c.Mean()), c.Total(), s.GetInFlight(), s.GetMaxInFlight(), s.GetWaiting())
	}
}

// brief shows a duration by two or three digits.
func brief(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// printReadiness tells how ready the server is, and what keeps it from being so.
func printReadiness(w io.Writer, r *kvscoutv1.Readiness) {
	fmt.Fprintf(w, "state: %s", word(r.GetState(), "SERVICE_STATE_"))
	for _, list := range []struct {
		what string
		ids  []string
	}{{"waiting for", r.GetWaiting()}, {"not live", r.GetDegraded()}, {"flagged", r.GetFlagged()}} {
		if len(list.ids) > 0 {
			fmt.Fprintf(w, "; %s: %s", list.what, dashboard.Printable(strings.Join(list.ids, ", ")))
		}
	}
	fmt.Fprintln(w)
}

// printDiscovery has one line for each place that workers come from, and for each worker that cannot be listened to yet.
func printDiscovery(w io.Writer, d *kvscoutv1.DiscoveryStats) {
	for _, from := range d.GetDiscoverers() {
		fmt.Fprintf(w, "workers from %s: %d, failures: %d", from.GetName(), from.GetWorkers(), from.GetFailures())
		if from.GetError() != "" {
			fmt.Fprintf(w, ", now: %s", dashboard.Printable(strings.ReplaceAll(from.GetError(), "\n", "; ")))
		}
		fmt.Fprintln(w)
	}
	for _, p := range d.GetPending() {
		fmt.Fprintf(w, "worker %q waits: %s\n", p.GetWorkerId(), dashboard.Printable(p.GetReason()))
	}
}

// printRenderers has one line for each renderer; nothing without any.
func printRenderers(w io.Writer, renderers []*kvscoutv1.RendererStats) error {
	if len(renderers) == 0 {
		return nil
	}
	t := newTable(w, "MODEL", "RENDERER", "READY", "CALLS", "CACHED", "MEMORY", "ERRORS", "FAULT")
	for _, r := range renderers {
		model := r.GetModel()
		if model == "" {
			model = "(others)"
		}
		t.row(model, r.GetRenderer(), r.GetReady(), r.GetCalls(), r.GetCacheHits(), r.GetMemoryBytes()+r.GetCacheBytes(),
			counts(r.GetErrors()), orDash(r.GetError()))
	}
	return t.flush()
}

// printSnapshot tells what became of the snapshot.
func printSnapshot(w io.Writer, s *kvscoutv1.SnapshotStats) {
	fmt.Fprintf(w, "snapshot: %s at the start", s.GetOutcome())
	if s.GetError() != "" {
		fmt.Fprintf(w, " and refused (%s), so the index began empty", s.GetError())
	}
	if s.GetRestoredAge() != nil {
		fmt.Fprintf(w, ", %v old, %d sources went on, dropped: %s", s.GetRestoredAge().AsDuration().Round(time.Second),
			s.GetRestoredSources(), counts(s.GetDroppedSources()))
	}
	if s.GetWaitingSources() > 0 {
		fmt.Fprintf(w, ", %d wait for their workers to be found", s.GetWaitingSources())
	}
	fmt.Fprintf(w, "; %d written", s.GetSaves())
	if s.GetLastAge() != nil {
		fmt.Fprintf(w, ", the last %v ago in %v, %d bytes, %d sources", s.GetLastAge().AsDuration().Round(time.Second),
			s.GetLastTook().AsDuration().Round(time.Millisecond), s.GetLastBytes(), s.GetLastSources())
		if s.GetLastSkipped() > 0 {
			fmt.Fprintf(w, " and %d left out", s.GetLastSkipped())
		}
	}
	fmt.Fprintf(w, "; failures: %s\n", counts(s.GetFailures()))
}

// printSources has one line for each source.
func printSources(w io.Writer, sources []*kvscoutv1.SourceStats) error {
	if len(sources) == 0 {
		_, err := fmt.Fprintln(w, "no workers")
		return err
	}
	t := newTable(w, "WORKER", "RANK", "STATE", "LAG", "BYTES", "BATCHES", "REPLAYED", "STORED", "REMOVED", "CLEARED", "BLOCKS",
		"GAPS", "LOST", "RESETS", "WAITING", "GIVEN UP", "EVICTED", "ANSWERS", "REJECTED")
	for _, s := range sources {
		lag := "-"
		if s.LagSeconds != nil {
			lag = brief(time.Duration(s.GetLagSeconds() * float64(time.Second))).String()
		}
		t.row(s.GetWorkerId(), s.GetRank(), freshWords(s.GetFreshness()), lag, s.GetBytes(), s.GetBatches(), s.GetReplayedBatches(),
			s.GetStoredEvents(), s.GetRemovedEvents(), s.GetClearedEvents(), tierBlocks(s.GetTiers()), s.GetGaps(), s.GetLostBatches(),
			s.GetResets(), s.GetOrphansWaiting(), s.GetOrphansDropped(), s.GetEvictedBlocks(), boundWords(s.GetBound()), counts(s.GetRejected()))
	}
	return t.flush()
}

func tierBlocks(tiers []*kvscoutv1.TierBlocks) string {
	var parts []string
	for _, t := range tiers {
		parts = append(parts, fmt.Sprintf("%s %d", tierWord(t.GetTier()), t.GetBlocks()))
	}
	return orDash(strings.Join(parts, ", "))
}

// counts lists counters by name.
func counts(m map[string]uint64) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return orDash(strings.Join(parts, ", "))
}
