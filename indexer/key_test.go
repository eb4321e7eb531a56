package indexer

import (
	"encoding/binary"
	"math/rand/v2"
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

// expectKeys fails unless a keyer, asked for runs of blocks here and there, makes of each block what XXH3 is of its tokens.
func expectKeys(t *testing.T, tokens []uint32, size int, pairs bool, seed uint64, order *rand.Rand) {
	t.Helper()
	k := newKeyer(tokens, nil, size, pairs, seed)
	window := size
	if pairs {
		window++
	}
	want := make([]Key, k.blocks())
	for i := range want {
		var b []byte
		for _, token := range tokens[i*size : i*size+window] {
			b = binary.LittleEndian.AppendUint32(b, token)
		}
		want[i] = Key(xxh3.HashSeed(b, seed))
	}
	ask := func(i, n int) int {
		list := k.from(i, n)
		if len(list) < 1 || len(list) > n {
			t.Fatalf("size %d: %d keys from block %d of %d, want 1 to %d", size, len(list), i, len(want), n)
		}
		for j, key := range list {
			if key != want[i+j] || k.at(i+j) != key {
				t.Fatalf("size %d, seed %d, pairs %v: key of block %d of %d is %x and %x, XXH3 is %x", size, seed, pairs, i+j, len(want), key, k.at(i+j), want[i+j])
			}
		}
		return i + len(list)
	}
	for i := 0; i < len(want); {
		i = ask(i, 1+order.IntN(min(2*maxRun, len(want)-i)))
	}
	for range min(16, len(want)) {
		i := order.IntN(len(want))
		ask(i, 1+order.IntN(len(want)-i))
	}
}

// Keys are XXH3 of their tokens (rule 2), whatever the block size, and however many are made at once.
func TestKeys_AreXXH3(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tokens := make([]uint32, 6000)
	for i := range tokens {
		tokens[i] = r.Uint32()
	}
	for _, size := range []int{1, 2, 3, 4, 5, 8, 15, 16, 17, 32, 33, 48, 60, 61, 64, 128} {
		for _, seed := range []uint64{0, 1, chainSeed, 1<<63 - 1, 1<<64 - 1, r.Uint64(), r.Uint64()} {
			for _, blocks := range []int{1, 2, 7, maxRun - 1, maxRun, maxRun + 1, 3 * maxRun} {
				from := r.IntN(3) // odd words too
				expectKeys(t, tokens[from:min(len(tokens), from+size*blocks+r.IntN(size))], size, false, seed, r)
				expectKeys(t, tokens[from:min(len(tokens), from+size*blocks+1)], size, true, seed, r)
			}
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add(make([]byte, 64*70), uint64(chainSeed), uint8(16), false, uint64(1))
	f.Add(make([]byte, 128*66), uint64(7), uint8(32), false, uint64(3))
	f.Add([]byte("sixty-eight bytes are a block of sixteen pairs of tokens, like this."), uint64(1<<63), uint8(16), true, uint64(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64, size uint8, pairs bool, order uint64) {
		tokens := make([]uint32, len(b)/4)
		for i := range tokens {
			tokens[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		expectKeys(t, tokens, max(1, int(size)), pairs, seed, rand.New(rand.NewPCG(order, 0)))
	})
}

// Blocks that have images are made in runs as one by one, and so are those between them.
func TestKeys_RunsWithMedia(t *testing.T) {
	const size = 16
	tokens := sequence(1, size*(2*maxRun+5))
	features := []Feature{{Hash: hex64(7), Offset: 30, Length: 40}, {Hash: "b", Offset: 75, Length: 1}, {Hash: "c", Offset: size * (maxRun - 1), Length: 2 * size}}
	k := newKeyer(tokens, features, size, false, chainSeed)
	bare := Keys(tokens, nil, size, false, Namespace{})
	for i, key := range Keys(tokens, features, size, false, Namespace{}) {
		if want := k.mixedKey(i); key != want {
			t.Errorf("block %d: %x, alone %x", i, key, want)
		}
		media := i >= 1 && i <= 4 || i == maxRun-1 || i == maxRun
		if (key == bare[i]) == media {
			t.Errorf("block %d has an image: %v, and its key is that of its tokens: %v", i, media, key == bare[i])
		}
	}
}
