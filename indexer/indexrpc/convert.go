package indexrpc

import (
	"math"
	"time"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// TierOf is the API's name of a tier: the enums run alike, one number up.
func TierOf(t events.Tier) kvscoutv1.Tier { return kvscoutv1.Tier(t) + 1 }

// RoleFrom reads a role. It errs with a *Error of ReasonBadRole for a number that is none.
func RoleFrom(r kvscoutv1.Role) (ingest.Role, error) {
	switch r {
	case kvscoutv1.Role_ROLE_UNSPECIFIED:
		return ingest.RoleAny, nil
	case kvscoutv1.Role_ROLE_PREFILL:
		return ingest.RolePrefill, nil
	case kvscoutv1.Role_ROLE_DECODE:
		return ingest.RoleDecode, nil
	case kvscoutv1.Role_ROLE_BOTH:
		return ingest.RoleBoth, nil
	default:
		return 0, Failf(ReasonBadRole, "role %d is not known", r)
	}
}

// RoleOf is the inverse of RoleFrom.
func RoleOf(r ingest.Role) kvscoutv1.Role {
	switch r {
	case ingest.RolePrefill:
		return kvscoutv1.Role_ROLE_PREFILL
	case ingest.RoleDecode:
		return kvscoutv1.Role_ROLE_DECODE
	case ingest.RoleBoth:
		return kvscoutv1.Role_ROLE_BOTH
	default:
		return kvscoutv1.Role_ROLE_UNSPECIFIED
	}
}

// FreshnessOf is a source's freshness as of now.
func FreshnessOf(f indexer.Freshness, now time.Time) *kvscoutv1.Freshness {
	return new(FreshnessRow).Fill(&f, now)
}

// FreshnessRow is the memory of a Freshness with what it points to.
type FreshnessRow struct {
	msg      kvscoutv1.Freshness
	sequence uint64
	age      float64
}

// Fill makes a source's freshness as of now in r, which must be new.
func (r *FreshnessRow) Fill(f *indexer.Freshness, now time.Time) *kvscoutv1.Freshness {
	r.msg.State = kvscoutv1.FreshnessState(f.State) + 1
	if f.HasSequence {
		r.sequence = f.LastSequence
		r.msg.LastSequence = &r.sequence
	}
	if age, ok := f.Age(now); ok {
		r.age = age.Seconds()
		r.msg.AgeSeconds = &r.age
	}
	return &r.msg
}

var boundKinds = [...]kvscoutv1.BoundKind{
	indexer.Exact:    kvscoutv1.BoundKind_BOUND_KIND_EXACT,
	indexer.Upper:    kvscoutv1.BoundKind_BOUND_KIND_UPPER,
	indexer.Lower:    kvscoutv1.BoundKind_BOUND_KIND_LOWER,
	indexer.Estimate: kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE,
}

// boundReasons are sorted by the API's number.
var boundReasons = []struct {
	doubt  indexer.Doubt
	reason kvscoutv1.BoundReason
}{
	{indexer.DoubtNamespace, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_NAMESPACE},
	{indexer.DoubtWindow, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_WINDOW},
	{indexer.DoubtState, kvscoutv1.BoundReason_BOUND_REASON_HIDDEN_STATE},
	{indexer.DoubtGap, kvscoutv1.BoundReason_BOUND_REASON_GAP_KEPT},
	{indexer.DoubtHistory, kvscoutv1.BoundReason_BOUND_REASON_HISTORY_MISSING},
	{indexer.DoubtStale, kvscoutv1.BoundReason_BOUND_REASON_STALE},
	{indexer.DoubtBlockSize, kvscoutv1.BoundReason_BOUND_REASON_OTHER_BLOCK_SIZE},
	{indexer.DoubtAmbiguous, kvscoutv1.BoundReason_BOUND_REASON_AMBIGUOUS_REMOVAL},
	{indexer.DoubtMedia, kvscoutv1.BoundReason_BOUND_REASON_MEDIA_UNNAMED},
	{indexer.DoubtUnread, kvscoutv1.BoundReason_BOUND_REASON_EVENTS_UNREAD},
	{indexer.DoubtRefused, kvscoutv1.BoundReason_BOUND_REASON_STORES_REFUSED},
	{indexer.DoubtOrphans, kvscoutv1.BoundReason_BOUND_REASON_ORPHANS_WAITING},
	{indexer.DoubtCut, kvscoutv1.BoundReason_BOUND_REASON_PROMPT_CUT},
	{indexer.DoubtGroups, kvscoutv1.BoundReason_BOUND_REASON_GROUP_RULES_UNKNOWN},
	{indexer.DoubtBehind, kvscoutv1.BoundReason_BOUND_REASON_BEHIND},
	{indexer.DoubtTiers, kvscoutv1.BoundReason_BOUND_REASON_TIERS_UNCLEARED},
	{indexer.DoubtResumed, kvscoutv1.BoundReason_BOUND_REASON_RESUMED},
	{indexer.DoubtCapped, kvscoutv1.BoundReason_BOUND_REASON_CAPPED},
}

// BoundOf is a bound with its reasons in the enum's order.
func BoundOf(b indexer.Bound) *kvscoutv1.Bound {
	out := new(kvscoutv1.Bound)
	FillBound(out, b)
	return out
}

// FillBound makes out, which must be new, a bound with its reasons in the enum's order.
func FillBound(out *kvscoutv1.Bound, b indexer.Bound) {
	out.Kind = boundKinds[b.Kind]
	if b.Doubt == 0 {
		return
	}
	for _, r := range boundReasons {
		if b.Doubt&r.doubt != 0 {
			out.Reasons = append(out.Reasons, r.reason)
		}
	}
}

// Count fits a count into a message's 32 bits: what is over them stays at their end.
func Count[T int | int64 | uint64](n T) uint32 {
	if n < 0 {
		return 0
	}
	return uint32(min(uint64(n), math.MaxUint32))
}
