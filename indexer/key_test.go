package indexer

import (
	"slices"
	"testing"

	"github.com/zeebo/xxh3"
)

func sequence(from, to int) []uint32 {
	var out []uint32
	for t := from; t <= to; t++ {
		out = append(out, uint32(t))
	}
	return out
}

// The expected values are published: the first row is pinned in Dynamo's own test (test_router_event_new), the others
// were computed with an independent XXH3 library.
func TestKeys_PublishedVectors(t *testing.T) {
	if got := xxh3.HashStringSeed("test data", chainSeed); got != 13226331709069118873 {
		t.Errorf("XXH3 of %q = %d", "test data", got)
	}
	tests := []struct {
		name  string
		ns    Namespace
		size  int
		pairs bool
		toks  []uint32
		feats []Feature
		seed  uint64
		keys  []Key
		seq   []uint64
	}{
		{"plain", Namespace{}, 4, false, sequence(0, 11), nil, 1337,
			[]Key{9143094415614847814, 12124091508212882195, 1088361764653601668},
			[]uint64{9143094415614847814, 9510318385840434533, 16998148715716822651}},
		{"adapter", Namespace{Adapter: "adapter-a"}, 4, false, sequence(0, 11), nil, 8842669519798868182,
			[]Key{6665157333201000639, 11721812545976571723, 14488077642866817317},
			[]uint64{6665157333201000639, 13351519314849170528, 9730552557794562145}},
		{"salt", Namespace{Salt: "tenant-a"}, 4, false, sequence(0, 11), nil, 1948188790972764086,
			[]Key{17009624042690211646, 10000672136415158886, 13984174126468215255},
			[]uint64{17009624042690211646, 18279821067719767880, 14670460953096113724}},
		{"both", Namespace{Salt: "tenant-a", Adapter: "adapter-a"}, 4, false, sequence(0, 11), nil, 10790858310771630931,
			[]Key{8269515957840517240, 11937877779520612889, 14954360957602452228},
			[]uint64{8269515957840517240, 16913744751721653295, 5821023414475969460}},
		{"pairs", Namespace{}, 4, true, sequence(0, 11), nil, 1337,
			[]Key{14562210786876287112, 15916330181359808192},
			[]uint64{14562210786876287112, 11643125693293304894}},
		{"media", Namespace{}, 4, false, sequence(0, 11), []Feature{
			{Hash: hex64(7), Offset: 4, Length: 1}, {Hash: hex64(42), Offset: 6, Length: 1}}, 1337,
			[]Key{9143094415614847814, 18185284876202389922, 1088361764653601668},
			[]uint64{9143094415614847814, 11519096649944091108, 17005414546679347864}},
		{"block 16", Namespace{}, 16, false, sequence(1, 32), nil, 1337,
			[]Key{16863443419780771464, 2287610619914608821},
			[]uint64{16863443419780771464, 12466389667045779788}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.ns.Seed(); got != tt.seed {
				t.Errorf("seed = %d, want %d", got, tt.seed)
			}
			keys := Keys(tt.toks, tt.feats, tt.size, tt.pairs, tt.ns)
			if !slices.Equal(keys, tt.keys) {
				t.Errorf("keys = %d, want %d", keys, tt.keys)
			}
			if got := SequenceHashes(keys); !slices.Equal(got, tt.seq) {
				t.Errorf("sequence hashes = %d, want %d", got, tt.seq)
			}
		})
	}
	if got := SequenceHashes([]Key{11, 22, 33}); !slices.Equal(got[1:], []uint64{750553365844651409, 3257565445809651757}) {
		t.Errorf("chain over 11, 22, 33 = %d", got)
	}
}

// hex64 spells a 64-digit identifier whose folded hash is v.
func hex64(v uint64) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 64)
	for i := range out {
		out[i] = '0'
		if i < 16 {
			out[i] = digits[v>>(60-4*i)&15]
		}
	}
	return string(out)
}

// Two images of one block in either order are other content, though the recipe sorts them.
func TestKeys_MediaOrderMatters(t *testing.T) {
	toks := sequence(0, 7)
	a, b := Feature{Hash: hex64(1), Offset: 1, Length: 2}, Feature{Hash: hex64(2), Offset: 4, Length: 2}
	swapped := []Feature{{Hash: b.Hash, Offset: 1, Length: 2}, {Hash: a.Hash, Offset: 4, Length: 2}}
	if Keys(toks, []Feature{a, b}, 8, false, Namespace{})[0] == Keys(toks, swapped, 8, false, Namespace{})[0] {
		t.Error("swapped images share a key")
	}
}

// Case 82: one string as adapter, salt and extra key is three namespaces.
func TestKeys_Case82_KindsApart(t *testing.T) {
	seeds := []uint64{Namespace{}.Seed(), Namespace{Salt: "X"}.Seed(), Namespace{Adapter: "X"}.Seed(), Namespace{Extra: "X"}.Seed()}
	slices.Sort(seeds)
	if len(slices.Compact(seeds)) != 4 {
		t.Errorf("seeds are not apart: %d", seeds)
	}
}
