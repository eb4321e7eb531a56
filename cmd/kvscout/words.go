package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// word is an enum value as people read it: TIER_DEVICE is device.
func word(value fmt.Stringer, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

func tierWord(t kvscoutv1.Tier) string { return word(t, "TIER_") }

func roleWord(r kvscoutv1.Role) string {
	if r == kvscoutv1.Role_ROLE_UNSPECIFIED {
		return "any"
	}
	return word(r, "ROLE_")
}

// parseRole reads --role; empty is unspecified.
func parseRole(s string) (kvscoutv1.Role, error) {
	if s == "" {
		return kvscoutv1.Role_ROLE_UNSPECIFIED, nil
	}
	v, ok := kvscoutv1.Role_value["ROLE_"+strings.ToUpper(s)]
	if !ok || v == 0 {
		return 0, misuse("role %q is not prefill, decode or both", s)
	}
	return kvscoutv1.Role(v), nil
}

// parseRank reads --rank, whose -1 is every rank and comes back as nil.
func parseRank(rank int) (*uint32, error) {
	if rank < -1 || rank > math.MaxInt32 {
		return nil, misuse("rank %d is not -1 or more", rank)
	}
	if rank == -1 {
		return nil, nil
	}
	r := uint32(rank)
	return &r, nil
}

// boundWords is "exact", or the kind with its reasons.
func boundWords(b *kvscoutv1.Bound) string {
	kind := word(b.GetKind(), "BOUND_KIND_")
	if len(b.GetReasons()) == 0 {
		return kind
	}
	var reasons []string
	for _, r := range b.GetReasons() {
		reasons = append(reasons, word(r, "BOUND_REASON_"))
	}
	return kind + " (" + strings.Join(reasons, ", ") + ")"
}

// freshWords is the state with the last sequence number and the age of the last event.
func freshWords(f *kvscoutv1.Freshness) string {
	s := word(f.GetState(), "FRESHNESS_STATE_")
	if f != nil && f.LastSequence != nil {
		s += fmt.Sprintf(" #%d", f.GetLastSequence())
	}
	if f != nil && f.AgeSeconds != nil {
		s += " " + seconds(f.GetAgeSeconds()) + " ago"
	}
	return s
}

// accuracyWords is what outcomes showed of a worker.
func accuracyWords(a *kvscoutv1.Accuracy) string {
	s := fmt.Sprintf("%d outcomes: %d equal, %d over, %d under, %d wrong", a.GetOutcomes(), a.GetEqual(), a.GetOver(), a.GetUnder(), a.GetWrong())
	if a != nil && a.Recent != nil {
		s += fmt.Sprintf("; of the recent ones %.0f%% equal", 100*a.GetRecent())
	}
	if a.GetFlagged() {
		s += ", likely cause " + word(a.GetCause(), "ACCURACY_CAUSE_")
	}
	return s
}

// groupWords is what one KV-cache group holds of a prompt.
func groupWords(g *kvscoutv1.GroupHolding) string {
	s := "group"
	if g.Group != nil {
		s += fmt.Sprintf(" %d", g.GetGroup())
	}
	if g.GetKind() != "" {
		s += " (" + g.GetKind() + ")"
	}
	var runs []string
	for _, r := range g.GetRuns() {
		runs = append(runs, fmt.Sprintf("%s %d..%d", tierWord(r.GetTier()), r.GetFirstBlock(), r.GetFirstBlock()+r.GetBlocks()-1))
	}
	return fmt.Sprintf("%s, blocks of %d: %s; %d leading, ended by %s", s, g.GetBlockSize(), strings.Join(runs, ", "),
		g.GetLeadingBlocks(), word(g.GetEnd(), "MATCH_END_"))
}

// parseWeights reads --weights; nil without it. Their values are judged by the server.
func parseWeights(s string) (*kvscoutv1.TierWeights, error) {
	if s == "" {
		return nil, nil
	}
	w := new(kvscoutv1.TierWeights)
	fields := map[string]**float64{"device": &w.Device, "host": &w.Host, "disk": &w.Disk, "shared": &w.Shared, "unknown": &w.Unknown}
	for _, part := range strings.Split(s, ",") {
		name, text, _ := strings.Cut(part, "=")
		field, known := fields[name]
		v, err := strconv.ParseFloat(text, 64)
		if !known || err != nil || *field != nil {
			return nil, misuse("weights: %q is not TIER=WEIGHT, or is there twice", part)
		}
		*field = &v
	}
	return w, nil
}
