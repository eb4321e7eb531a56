package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// sample is a stream with some of everything, made by hand.
func sample() *indexer.Saved {
	return &indexer.Saved{
		Source:  events.Source{Worker: "w", Engine: events.EngineVLLM, Model: "m", Unpublished: []events.Hidden{events.HiddenWindow}},
		Cursor:  events.Cursor{Seq: 7, Sum: 1 << 63, Epoch: "\xff\x00e", Lossy: true, At: time.Unix(3, 4)},
		Partial: true,
		Books: []indexer.Book{{
			BookMeta: indexer.BookMeta{
				Sequence: 7, Heard: 5, Doubts: []string{"history_missing"}, Offloads: true, Waiting: 2,
				Groups:   []indexer.BookGroup{{ID: -1, Spec: events.SpecFull, Sizes: []int{4}}, {ID: 1, Spec: events.SpecSlidingWindow, Window: 9, Sizes: []int{4}}},
				Counters: indexer.BookCounters{Batches: 3, Events: []uint64{1, 2, 3, 4}, Rejected: map[string]uint64{"duplicate": 1}},
			},
			Scopes: []indexer.Scope{
				{Model: "m", BlockSize: 4},
				{Model: "m", BlockSize: 4, Pairs: true, Namespace: indexer.Namespace{Salt: "\xfe secret", Adapter: "a", Extra: "x"}},
			},
			Keys:   []indexer.Key{1, 2, 3, 4, 5, 6},
			Runs:   []indexer.KeyRun{{Parent: -1, Blocks: 3}, {Parent: 1, Blocks: 1}, {Parent: -2, Blocks: 2}},
			Held:   []indexer.HeldRun{{First: 0, Blocks: 2, Mask: 1}, {First: 3, Blocks: 1, Mask: 33}, {First: 3, Blocks: 2, Mask: 1}},
			Hashes: []events.Hash{{Lo: 11}, {Lo: 12}, {Lo: 13}, {Hi: 3, Lo: 14}, {Lo: 15}},
			Copies: []indexer.Copies{{Hash: 1, Bit: 0, N: 2}, {Hash: 2, Bit: 5, N: 1 << 31}},
		}, {BookMeta: indexer.BookMeta{Rank: 3}}},
	}
}

const fingerprint = 0x1234

// written is the path of a file with these streams.
func written(tb testing.TB, list ...*indexer.Saved) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "s")
	size, err := snapshot.Write(path, fingerprint, func(w *snapshot.Writer) error {
		if err := w.Fleet([]byte("fleet")); err != nil {
			return err
		}
		for _, s := range list {
			if err := w.Stream(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		tb.Fatalf("%v, %v; %d bytes were written", info, err, size)
	}
	return path
}

func TestFile_RoundTrip(t *testing.T) {
	other := sample()
	other.Source.Rank = 1
	path := written(t, sample(), other)
	f, err := snapshot.Open(path, fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if string(f.Fleet()) != "fleet" || f.Streams() != 2 || time.Since(f.Created) > time.Minute {
		t.Errorf("%q, %d streams, created %v", f.Fleet(), f.Streams(), f.Created)
	}
	var got indexer.Saved
	same := func(want *indexer.Saved) {
		t.Helper()
		if diff := cmp.Diff(want, &got, cmpopts.IgnoreUnexported(indexer.Saved{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	}
	for _, id := range []string{"w/1", "w/0"} {
		at, ok := f.Find(id)
		if !ok {
			t.Fatalf("no %s", id)
		}
		if err := f.Stream(at, &got); err != nil {
			t.Fatal(err)
		}
		if id == "w/0" {
			same(sample())
		} else {
			same(other)
		}
	}
	if _, ok := f.Find("w/2"); ok {
		t.Error("a source that is not there")
	}
}

// Invariant 1: any part cut off, any bit flipped, anything appended is refused.
func TestFile_Damage(t *testing.T) {
	path := written(t, sample())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, at int, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := snapshot.Open(path, fingerprint)
		if err == nil {
			f.Close()
			t.Fatalf("%s at %d is not noticed", what, at)
		}
		if !errors.Is(err, snapshot.ErrDamaged) && !errors.Is(err, snapshot.ErrVersion) || errors.Is(err, snapshot.ErrVersion) && (what != "bit" || at < 8 || at >= 16) {
			t.Fatalf("%s at %d: %v", what, at, err)
		}
	}
	for n := range whole {
		refused("cut", n, whole[:n])
		b := bytes.Clone(whole)
		b[n] ^= 1 << (n % 8)
		refused("bit", n, b)
	}
	refused("append", len(whole), append(bytes.Clone(whole), 0))
	refused("twice", len(whole), append(bytes.Clone(whole), whole...))
}

// resealed sets the header's checksum right again.
func resealed(b []byte, change func([]byte)) []byte {
	b = bytes.Clone(b)
	change(b)
	binary.LittleEndian.PutUint64(b[32:], xxhash.Sum64(b[:32]))
	return b
}

func TestFile_OtherVersions(t *testing.T) {
	path := written(t, sample())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"version":    resealed(whole, func(b []byte) { b[12]++ }),
		"byte order": resealed(whole, func(b []byte) { binary.BigEndian.PutUint32(b[8:], 0x01020304) }),
		"options":    resealed(whole, func(b []byte) { b[24]++ }),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.Open(path, fingerprint); !errors.Is(err, snapshot.ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := snapshot.Open(filepath.Join(t.TempDir(), "none"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := snapshot.Open(t.TempDir(), 0); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("a directory: %v", err)
	}
}

// Invariant 3: a write that fails, at whatever point, leaves the old file, and nothing beside it.
func TestWrite_FailureLeavesTheOldFile(t *testing.T) {
	path := written(t, sample())
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for n := range 3 {
		_, err := snapshot.Write(path, fingerprint, func(w *snapshot.Writer) error {
			if n > 0 {
				_ = w.Fleet(nil)
			}
			if n > 1 {
				_ = w.Stream(sample())
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	}
	long := sample()
	long.Source.Topic = string(make([]byte, 1<<17))
	_, err = snapshot.Write(path, fingerprint, func(w *snapshot.Writer) error {
		return errors.Join(w.Fleet(nil), w.Stream(long))
	})
	if !errors.Is(err, snapshot.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(snapshot.Temp(path), []byte("left by a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file is not what it was, %v", err)
	}
	written(t, sample())
	if _, err := snapshot.Write(path, fingerprint, func(w *snapshot.Writer) error { return w.Fleet(nil) }); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := snapshot.Write(filepath.Join(path, "no", "directory"), 0, nil); err == nil {
		t.Error("written into a directory that is none")
	}
}

// sealed is a file of these sections, with every checksum right.
func sealed(sections ...[]byte) []byte {
	le := binary.LittleEndian
	b := []byte("kvscsnap")
	b = le.AppendUint32(b, 0x01020304)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, 5)
	b = le.AppendUint64(b, fingerprint)
	b = le.AppendUint64(b, xxhash.Sum64(b))
	add := func(kind uint32, content []byte) {
		at := len(b)
		b = le.AppendUint32(b, kind)
		b = le.AppendUint32(b, 0)
		b = le.AppendUint64(b, uint64(len(content)))
		b = append(b, content...)
		b = le.AppendUint64(b, xxhash.Sum64(b[at:]))
	}
	for i, s := range sections {
		add(uint32(min(i, 1)+1), s)
	}
	end := le.AppendUint64(nil, uint64(len(sections)))
	add(3, le.AppendUint64(end, xxhash.Sum64(b)))
	return b
}

// contents is the content of the first stream's section of a file of ours.
func contents(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	b = b[40:]
	le := binary.LittleEndian
	b = b[16+le.Uint64(b[8:])+8:] // the fleet
	return b[16 : 16+le.Uint64(b[8:])]
}

// FuzzOpen opens files whose checksums are right and whose content is anything. Whatever is accepted can be restored or is
// refused as a whole, and no more memory is taken than a file of that size can need (invariant 2).
func FuzzOpen(f *testing.F) {
	f.Add(contents(f, written(f, sample())))
	plain := sample()
	plain.Books = plain.Books[:1]
	plain.Books[0].Copies = nil
	f.Add(contents(f, written(f, plain)))
	f.Add([]byte{})
	f.Add([]byte{2, '{', '}', 1, 2, '{', '}', 0xff, 0xff, 0xff, 0xff, 0x0f})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(dir, "s")
		if err := os.WriteFile(path, sealed(nil, content), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := snapshot.Open(path, fingerprint)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<21+40*uint64(len(content)) {
			t.Errorf("%d bytes taken for a file of %d", took, len(content))
		}
		if err != nil {
			if !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("got %v", err)
			}
			return
		}
		defer file.Close()
		restoreAny(t, file)
	})
}

// restoreAny restores the first stream into an index and checks that it leaves nothing behind.
func restoreAny(t *testing.T, file *snapshot.File) {
	var s indexer.Saved
	if err := file.Stream(0, &s); err != nil {
		t.Fatalf("proven, and then: %v", err)
	}
	for _, plain := range []bool{false, true} {
		x := indexer.New(indexer.Options{Plain: plain})
		w, err := x.NewWriter(s.Source, events.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Restore(&s, time.Hour); err == nil {
			var again indexer.Saved
			if !w.Export(&again) || len(again.Books[0].Hashes) != len(s.Books[0].Hashes) {
				t.Errorf("%d blocks restored, %d saved again", len(s.Books[0].Hashes), len(again.Books[0].Hashes))
			}
		} else if !errors.Is(err, indexer.ErrBook) && !errors.Is(err, indexer.ErrOtherSource) {
			t.Errorf("got %v", err)
		} else if st := x.Stats(); st.HolderBlocks != 0 || st.Blocks != 0 || st.Scopes != 0 || st.Sources != 1 {
			t.Errorf("refused (%v), and there is %+v", err, st)
		}
		w.Close()
		if st := x.Stats(); st.HolderBlocks != 0 || st.Blocks != 0 || st.Scopes != 0 || st.Sources != 0 {
			t.Errorf("closed, and there is %+v", st)
		}
	}
}
