package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kvscout/kvscout/events"
)

// headerHex is {0: 0, 8: "kvscout recording", 9: 1}, by hand.
const headerHex = "a3" + "0000" + "08" + "71" + "6b7673636f7574207265636f7264696e67" + "09" + "01"

// noteHex is {0: 4, 4: "good"}, by hand.
const noteHex = "a2" + "0004" + "0464676f6f64"

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pack(t testing.TB, content []byte, options ...zstd.EOption) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	return enc.EncodeAll(content, nil)
}

// Items between two good notes, raw and as one frame; every case by hand.
func TestDump_BadItems(t *testing.T) {
	for name, c := range map[string]struct {
		item string
		lost bool // what follows cannot be read
	}{
		"no map":             {item: "01"},
		"kind a text":        {item: "a1 00 6161"},
		"kind over 64 bits":  {item: "a1 00 c2 49 010000000000000000"},
		"time a text":        {item: "a2 0004 01 6161"},
		"text not UTF-8":     {item: "a2 0004 04 61ff"},
		"key twice":          {item: "a3 0004 0461610461 62"},
		"source missing":     {item: "a2 0002 03 8141 61"},
		"frames missing":     {item: "a2 0002 02 6477312f30"},
		"frame a text":       {item: "a3 0002 02 6477312f30 03 816161"},
		"request missing":    {item: "a2 0003 02 6477312f30"},
		"request of a note":  {item: "a2 0004 07 a0"},
		"tokens not of 4":    {item: "a3 0003 02 6477312f30 07 a1 06 43010203"},
		"token negative":     {item: "a3 0003 02 6477312f30 07 a1 06 44ffffffff"},
		"count negative":     {item: "a3 0003 02 6477312f30 07 a1 0b 20"},
		"rank negative":      {item: "a3 0001 02 6577312f2d31 06 a1 00 6476 6c6c6d"},
		"engine unknown":     {item: "a3 0001 02 6477312f30 06 a1 00 6161"},
		"indefinite map":     {item: "bf 0004 ff"},
		"tag":                {item: "a2 0004 0a c1 00"},
		"stray break":        {item: "ff", lost: true},
		"reserved length":    {item: "1c", lost: true},
		"nested too deep":    {item: "a2 0004 0a" + strings.Repeat("81", 40) + "00", lost: true},
		"list too long":      {item: "a2 0002 03 9a 00010001" + strings.Repeat("40", 65537), lost: true},
		"list longer still":  {item: "a2 0002 03 9b 7fffffffffffffff 40", lost: true},
		"bytes without end?": {item: "a2 0002 04 7b 7fffffffffffffff", lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			content := unhex(t, headerHex+noteHex+c.item+noteHex)
			want := 2
			if c.lost {
				want = 1
			}
			got, faults := readAll(t, content)
			bad := len(faults) == 1 && (errors.Is(faults[0], ErrRecord) || c.lost && errors.Is(faults[0], ErrTorn))
			if len(got) != want || !bad {
				t.Errorf("raw: %d records, %v", len(got), faults)
			}
			// In a dump the frame behind stands by itself.
			two := append(pack(t, content), pack(t, unhex(t, noteHex))...)
			got, faults = readAll(t, two)
			if len(got) != want+1 || len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
				t.Errorf("dump: %d records, %v", len(got), faults)
			}
		})
	}
}

// Later versions may add keys and kinds: keys are passed over, kinds are counted. Dumps may be joined.
func TestDump_ForwardCompatible(t *testing.T) {
	later := "a3 0004 0464676f6f64 1863 a2 00 82 01 f5 6161 f6" // key 99 holds a map
	content := unhex(t, headerHex+later+"a1 0017"+"a2 00190400 01 05"+headerHex+noteHex)
	for form, data := range map[string][]byte{"raw": content, "dump": pack(t, content)} {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		got, faults := drain(t, r)
		if len(got) != 2 || got[0].Text != "good" || len(faults) != 0 || r.Unknown() != 2 {
			t.Errorf("%s: %d records, %v, %d unknown", form, len(got), faults, r.Unknown())
		}
	}
	joined := append(dump(t, sample(t), 3), dump(t, sample(t), 2)...)
	equal(t, mustRead(t, joined), append(sample(t), sample(t)...))
}

func TestReader_NoRecording(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":             {nil, ErrTorn},
		"text":              {[]byte("hello"), ErrFormat},
		"gzip":              {[]byte("\x1f\x8b\x08\x00"), ErrFormat},
		"zstd of text":      {pack(t, []byte("hello, world")), ErrFormat},
		"zstd of a note":    {pack(t, unhex(t, noteHex)), ErrFormat},
		"raw without magic": {unhex(t, "a3 0000 08 6161 0901"), ErrFormat},
		"version 2":         {unhex(t, headerHex[:len(headerHex)-2]+"02"), ErrFormat},
		"version 0":         {unhex(t, headerHex[:len(headerHex)-2]+"00"), ErrFormat},
		"joined version 2":  {unhex(t, headerHex+headerHex[:len(headerHex)-2]+"02"+noteHex), ErrFormat},
		"start of a frame":  {[]byte{0x28, 0xb5}, ErrTorn},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := readAll(t, c.data)
			if len(got) != 0 || len(faults) != 1 || !errors.Is(faults[0], c.want) {
				t.Errorf("%d records, %v", len(got), faults)
			}
		})
	}
}

// Frames of other writers: stored and repeated blocks, no checksum, one segment, skippable frames.
func TestDump_ForeignFrames(t *testing.T) {
	zeros := append(unhex(t, headerHex+"a2 0004 04 79 4e20"), make([]byte, 20000)...) // a note of 20000 NULs
	skippable := append(unhex(t, "5a2a4d18 05000000"), "later"...)
	for name, data := range map[string][]byte{
		"fastest":     pack(t, zeros, zstd.WithEncoderLevel(zstd.SpeedFastest)),
		"no checksum": pack(t, zeros, zstd.WithEncoderCRC(false)),
		"one segment": pack(t, zeros, zstd.WithSingleSegment(true)),
		"skippable":   append(bytes.Clone(skippable), append(pack(t, zeros), skippable...)...),
	} {
		if got := mustRead(t, data); len(got) != 1 || len(got[0].Text) != 20000 {
			t.Errorf("%s: %d records", name, len(got))
		}
	}
	// One block for each type, by hand: raw 1 byte, then RLE, last, no checksum.
	head := unhex(t, headerHex)
	frame := append(unhex(t, "28b52ffd 00 58"), byte(len(head)<<3&0xff), byte(len(head)>>5), 0)
	frame = append(frame, head...)
	frame = append(frame, unhex(t, "1b0000 00")...) // three times 00: integers, no records
	if got, faults := readAll(t, frame); len(got) != 0 || len(faults) != 3 {
		t.Errorf("%d records, %v", len(got), faults)
	}
	if got, faults := readAll(t, append(pack(t, head), "junk behind"...)); len(got) != 0 || len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
		t.Errorf("%d records, %v", len(got), faults)
	}
	if got, faults := readAll(t, unhex(t, "28b52ffd 00 58 070000")); len(got) != 0 || len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
		t.Errorf("reserved block: %d records, %v", len(got), faults)
	}
}

// Rule17: sizes are refused before memory is taken for them; what follows a frame that is too large is read.
func TestRule17_SizesAreBounded(t *testing.T) {
	max := limits{record: 4 << 10, frame: 16 << 10}
	head := pack(t, unhex(t, headerHex))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	fat := binary.BigEndian.AppendUint32(unhex(t, "a2 0004 04 7a"), 8<<10)
	fat = append(fat, bytes.Repeat([]byte("x"), 8<<10)...)
	for name, bad := range map[string][]byte{
		"stored size":       pack(t, noise, zstd.WithEncoderLevel(zstd.SpeedFastest)),
		"decompressed size": pack(t, make([]byte, 1<<20)),
		"record":            pack(t, fat),
		"declared content":  unhex(t, "28b52ffd e0 00000000ffffff00 010000"),
		"declared bytes":    pack(t, unhex(t, "a2 0002 04 7b 00000fffffffffff")),
	} {
		t.Run(name, func(t *testing.T) {
			data := append(bytes.Clone(head), append(bytes.Clone(bad), pack(t, unhex(t, noteHex))...)...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := newReader(bytes.NewReader(data), max)
			if err != nil {
				t.Fatal(err)
			}
			got, faults := drain(t, r)
			runtime.ReadMemStats(&after)
			if len(got) != 1 || len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
				t.Errorf("%d records, %v", len(got), faults)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
	raw := append(unhex(t, headerHex), fat...)
	r, err := newReader(bytes.NewReader(raw), max)
	if err != nil {
		t.Fatal(err)
	}
	if got, faults := drain(t, r); len(got) != 0 || len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
		t.Errorf("raw: %d records, %v", len(got), faults)
	}
}

// Invariant 6: what could not be read back is not written, costs nothing else, and is named without its values.
func TestInvariant6_WriterRefuses(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	request := func(q Request) *Record { return &Record{Kind: KindRequest, Source: "w1/0", Request: &q} }
	many := make([]Feature, maxItems+1)
	for name, rec := range map[string]*Record{
		"no kind":         {Text: "secret"},
		"kind unknown":    {Kind: KindReplayReply + 1, Source: "w1/0"},
		"no source":       {Kind: KindMessage, Frames: message(1, "").Frames},
		"no frames":       {Kind: KindMessage, Source: "w1/0"},
		"no request":      {Kind: KindRequest, Source: "w1/0"},
		"no description":  {Kind: KindSource, Source: "w1/0"},
		"other source":    {Kind: KindSource, Source: "w1/0", Info: &events.Source{Worker: "w2", Engine: events.EngineVLLM}},
		"no engine":       {Kind: KindSource, Source: "w1/0", Info: &events.Source{Worker: "w1"}},
		"stray request":   {Kind: KindNote, Request: &Request{}},
		"text no UTF-8":   {Kind: KindNote, Text: "secret\xff"},
		"salt no UTF-8":   request(Request{CacheSalt: "secret\xff"}),
		"extra no UTF-8":  request(Request{Extra: map[string]string{"a": "secret\xff"}}),
		"token negative":  request(Request{Tokens: []uint32{1 << 31}}),
		"count negative":  request(Request{CachedTokens: -1}),
		"offset negative": request(Request{Features: []Feature{{Offset: -1}}}),
		"many features":   request(Request{Features: many}),
		"many frames":     {Kind: KindMessage, Source: "w1/0", Frames: make([][]byte, maxItems+1)},
		"too large":       {Kind: KindMessage, Source: "w1/0", Frames: [][]byte{make([]byte, maxRecord)}},
	} {
		err := w.Write(rec)
		if !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: error tells a value: %v", name, err)
		}
	}
	nilFrame := &Record{Kind: KindMessage, Source: "w1/0", Frames: [][]byte{nil, {1}}}
	if err := errors.Join(w.Write(nilFrame), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := &Record{Kind: KindMessage, Source: "w1/0", Frames: [][]byte{{}, {1}}}
	equal(t, mustRead(t, out.Bytes()), []*Record{want})
	if nilFrame.Frames[0] != nil {
		t.Error("the writer changed the caller's record")
	}
	if err := w.Write(want); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

// failing fails every write once it has taken left bytes.
type failing struct{ left int }

var errDisk = errors.New("disk is full")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

// Nothing is written behind a frame that was written in part, and every later call says why.
func TestWriter_FailureStays(t *testing.T) {
	w, err := NewWriter(&failing{left: 60})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(message(1, strings.Repeat("x", 10))); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Flush(); !errors.Is(err, errDisk) {
			t.Errorf("%v", err)
		}
	}
	if err := w.Write(message(2, "y")); !errors.Is(err, errDisk) {
		t.Errorf("%v", err)
	}
}

// An error of the input is returned as it is, and from then on.
func TestReader_InputFails(t *testing.T) {
	for form, data := range map[string][]byte{
		"dump": dump(t, sample(t), 3), "raw": readFile(t, "testdata/sample.cbor"), "lines": readFile(t, "testdata/sample.jsonl"),
	} {
		r, err := NewReader(io.MultiReader(bytes.NewReader(data[:len(data)/2]), failingReader{}))
		if err != nil {
			t.Fatal(err)
		}
		recs, faults := drain(t, r)
		if len(recs) == 0 || len(faults) != 1 || !errors.Is(faults[0], errDisk) {
			t.Errorf("%s: %d records, %v", form, len(recs), faults)
		}
		if _, err := r.Next(); !errors.Is(err, errDisk) {
			t.Errorf("%s: then %v", form, err)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errDisk }
