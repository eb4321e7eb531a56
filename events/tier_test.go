package events

import "testing"

// TestRule5_Mediums has the strings of wire.md 1.5, 3.2 and 5.1.
func TestRule5_Mediums(t *testing.T) {
	for want, names := range map[Tier][]string{
		TierDevice: {"", "GPU", "gpu", "DEVICE", "Device"},
		TierHost:   {"CPU", "cpu", "CPU_PINNED", "CPU_TIER1", "HOST"},
		TierDisk:   {"CPU_TIER2", "DISK", "disk", "NVME", "FS", "STORAGE"},
		TierShared: {"OBJ", "EXTERNAL", "NETWORK", "REMOTE", "SHARED", "SHARED_STORAGE", "OBJECT_STORE"},
		// Dynamo takes UNKNOWN for the device, a known weakness (ai-dynamo/dynamo#11571).
		TierUnknown: {"UNKNOWN", "HBM3", " GPU", "device(type='cuda')", "GPU\x00", "ſSD"},
	} {
		for _, name := range names {
			if got := ParseMedium(name); got != want {
				t.Errorf("medium %q is %v, want %v", name, got, want)
			}
		}
	}
}

func TestTierNames(t *testing.T) {
	for tier := range Tier(TierCount) {
		got, ok := ParseTier(tier.String())
		if got != tier || !ok {
			t.Errorf("%d is %q is %d", tier, tier, got)
		}
	}
	if _, ok := ParseTier("GPU"); ok {
		t.Error("a medium was taken for the name of a tier")
	}
	if got := Tier(TierCount).String(); got != "unknown" {
		t.Errorf("a tier out of range is %q", got)
	}
}

// TestSpecKinds has the strings of wire.md 1.6.
func TestSpecKinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  SpecKind
		dense bool
	}{
		{"", SpecUnset, true}, {"full_attention", SpecFull, true}, {"mla_attention", SpecMLA, true},
		{"sink_full_attention", SpecSinkFull, true}, {"sliding_window", SpecSlidingWindow, false},
		{"sliding_window_mla", SpecSlidingWindowMLA, false}, {"mamba", SpecMamba, false},
		{"chunked_local_attention", SpecChunkedLocal, false}, {"encoder_only_attention", SpecEncoderOnly, false},
		{"cross_attention", SpecCross, false}, {"unknown", SpecUnknown, false}, {"Full_Attention", SpecUnknown, false},
	} {
		if got := ParseSpecKind(c.name); got != c.want || got.Dense() != c.dense {
			t.Errorf("%q is %d, dense %v, want %d, %v", c.name, got, got.Dense(), c.want, c.dense)
		}
	}
}

// The names are labels of counters: each its own, none missing.
func TestNamesAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for r := range ReasonCount {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is named %q", r, name)
		} else {
			seen[name] = true
		}
	}
	states := make(map[string]bool)
	for s := StateUnknown; s <= StateStale; s++ {
		if name := s.String(); name == "" || states[name] {
			t.Errorf("state %d is named %q", s, name)
		} else {
			states[name] = true
		}
	}
	if ReasonCount.String() != "unknown" || State(200).String() != "unknown" {
		t.Error("a value out of range has a name")
	}
}
