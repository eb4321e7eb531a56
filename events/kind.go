package events

var kindNames = [...]string{Stored: "stored", Removed: "removed", Cleared: "cleared", TierCleared: "tier_cleared"}

// String is the kind as people read it.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "none"
}
