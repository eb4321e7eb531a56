package events

import "strings"

// Tier says where a copy of a block lies, from the fastest to the slowest.
type Tier uint8

const (
	// TierDevice is the accelerator's memory.
	TierDevice Tier = iota
	// TierHost is the worker's main memory.
	TierHost
	// TierDisk is storage of the worker.
	TierDisk
	// TierShared is storage or memory that is not the worker's own.
	TierShared
	// TierUnknown is a medium this version does not know. It is counted and never scores (rule 5).
	TierUnknown
	// TierCount is the number of tiers.
	TierCount = int(TierUnknown) + 1
)

var tierNames = [TierCount]string{"device", "host", "disk", "shared", "unknown"}

func (t Tier) String() string {
	if int(t) < len(tierNames) {
		return tierNames[t]
	}
	return "unknown"
}

// ParseTier is the inverse of Tier.String.
func ParseTier(s string) (Tier, bool) {
	for i, n := range tierNames {
		if n == s {
			return Tier(i), true
		}
	}
	return TierUnknown, false
}

var mediums = map[string]Tier{
	"": TierDevice, "GPU": TierDevice, "DEVICE": TierDevice,
	"CPU": TierHost, "CPU_PINNED": TierHost, "CPU_TIER1": TierHost, "HOST": TierHost,
	"CPU_TIER2": TierDisk, "DISK": TierDisk, "NVME": TierDisk, "FS": TierDisk, "STORAGE": TierDisk,
	"EXTERNAL": TierShared, "NETWORK": TierShared, "REMOTE": TierShared, "SHARED": TierShared,
	"SHARED_STORAGE": TierShared, "OBJECT_STORE": TierShared, "OBJ": TierShared,
}

// ParseMedium names the tier of a medium as engines announce it, in any case: "" is the device (vLLM before
// vllm-project/vllm#19737), an unheard-of name is TierUnknown and never the device.
func ParseMedium(s string) Tier {
	if t, ok := mediums[s]; ok {
		return t
	}
	if t, ok := mediums[strings.ToUpper(s)]; ok {
		return t
	}
	return TierUnknown
}
