package main

import (
	"fmt"
	"math"
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
