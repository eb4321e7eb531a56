package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/indexer"
)

var (
	// ErrDamaged is a file that is not whole, or was changed since it was written.
	ErrDamaged = errors.New("snapshot is damaged")
	// ErrVersion is a file of another version, byte order or of other options.
	ErrVersion = errors.New("snapshot is of another version")
)

// Any is a fingerprint that fits every file.
const Any = 0

// File is a snapshot that was found whole.
type File struct {
	// Created is when it was written, Bytes its size, Version that of its form.
	Created time.Time
	Bytes   int64
	Version int

	in      *os.File
	fleet   []byte
	streams []span
	ids     map[string]int // of sources, into streams
	buf     []byte
}

// span is where a section's content lies.
type span struct {
	at   int64
	size int
}

// Open reads the whole file at path and proves it: every checksum, every claim, the order of every array. Unless
// fingerprint is Any the file must have been written with it. It errs with an error of the system (fs.ErrNotExist),
// ErrDamaged or ErrVersion. Close the file.
func Open(path string, fingerprint uint64) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	f := &File{in: in, ids: make(map[string]int)}
	if err := f.prove(fingerprint); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.in.Close() }

// Fleet is the text that Writer.Fleet took.
func (f *File) Fleet() []byte { return f.fleet }

// Streams is how many streams there are.
func (f *File) Streams() int { return len(f.streams) }

// Stream fills s with the stream at position i. It errs with ErrDamaged if the file has changed since Open, or with an
// error of the system.
func (f *File) Stream(i int, s *indexer.Saved) error {
	content, err := f.read(f.streams[i])
	if err != nil {
		return err
	}
	if err := decodeStream(content, s); err != nil {
		return fmt.Errorf("%w: stream %d: %w", ErrDamaged, i, err)
	}
	return nil
}

// Find is the position of the stream of a source.
func (f *File) Find(id string) (int, bool) {
	i, ok := f.ids[id]
	return i, ok
}

// read reads a section's content into memory that is used again.
func (f *File) read(s span) ([]byte, error) {
	if cap(f.buf) < s.size {
		f.buf = make([]byte, s.size)
	}
	b := f.buf[:s.size]
	if _, err := f.in.ReadAt(b, s.at); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return b, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

func (f *File) prove(fingerprint uint64) error {
	info, err := f.in.Stat()
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if !info.Mode().IsRegular() {
		return damaged("it is no file")
	}
	f.Bytes = info.Size()
	whole := xxhash.New()
	if err := f.header(whole, fingerprint); err != nil {
		return err
	}
	var saved indexer.Saved
	sections := 0
	for at := int64(headerBytes); ; sections++ {
		sum := whole.Sum64()
		kind, content, err := f.section(whole, at)
		if err != nil {
			return err
		}
		begin := at + sectionBytes
		at = begin + int64(len(content)) + sumBytes
		switch {
		case kind == kindEnd:
			return f.end(content, at, sections, sum)
		case kind == kindFleet && sections == 0:
			f.fleet = append([]byte(nil), content...)
		case kind == kindStream && sections > 0:
			if err := decodeStream(content, &saved); err != nil {
				return damaged("section %d: %w", sections, err)
			}
			id := saved.Source.ID()
			if _, twice := f.ids[id]; twice {
				return damaged("section %d: source %s is there twice", sections, id)
			}
			f.ids[id] = len(f.streams)
			f.streams = append(f.streams, span{begin, len(content)})
		default:
			return damaged("section %d is of kind %d", sections, kind)
		}
	}
}

func (f *File) header(whole *xxhash.Digest, fingerprint uint64) error {
	var h [headerBytes]byte
	if _, err := f.in.ReadAt(h[:], 0); err != nil {
		return damaged("it is cut off")
	}
	le := binary.LittleEndian
	switch mark := le.Uint32(h[8:]); {
	case string(h[:8]) != magic:
		return damaged("it does not begin as one")
	case mark == 0x04030201:
		return fmt.Errorf("%w: its bytes are in another order", ErrVersion)
	case mark != orderMark:
		return damaged("its byte order is none")
	}
	if v := le.Uint32(h[12:]); v != version {
		return fmt.Errorf("%w: %d, this is %d", ErrVersion, v, version)
	}
	if le.Uint64(h[32:]) != xxhash.Sum64(h[:32]) {
		return damaged("the header's checksum is wrong")
	}
	if fp := le.Uint64(h[24:]); fingerprint != Any && fp != fingerprint {
		return fmt.Errorf("%w: it was written with other options", ErrVersion)
	}
	f.Created, f.Version = time.Unix(0, int64(le.Uint64(h[16:]))), version
	_, _ = whole.Write(h[:])
	return nil
}

// section reads the section at a position. Its content is valid until the next one is read.
func (f *File) section(whole *xxhash.Digest, at int64) (kind uint32, content []byte, err error) {
	var head [sectionBytes]byte
	if _, err := f.in.ReadAt(head[:], at); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, damaged("it is cut off at %d", at)
		}
		return 0, nil, damaged("%w", err)
	}
	le := binary.LittleEndian
	size, left := le.Uint64(head[8:]), f.Bytes-at-sectionBytes-sumBytes
	if left < 0 || size > uint64(left) || size > math.MaxInt-sumBytes || le.Uint32(head[4:]) != 0 {
		return 0, nil, damaged("a section at %d claims %d bytes", at, size)
	}
	all, err := f.read(span{at + sectionBytes, int(size) + sumBytes})
	if err != nil {
		return 0, nil, err
	}
	content = all[:size]
	sum := xxhash.New()
	_, _ = sum.Write(head[:])
	_, _ = sum.Write(content)
	if sum.Sum64() != le.Uint64(all[size:]) {
		return 0, nil, damaged("the checksum of the section at %d is wrong", at)
	}
	_, _ = whole.Write(head[:])
	_, _ = whole.Write(all)
	return le.Uint32(head[:]), content, nil
}

// end checks the last section's content; the file must end where it does, at.
func (f *File) end(content []byte, at int64, sections int, sum uint64) error {
	le := binary.LittleEndian
	switch {
	case len(content) != endBytes:
		return damaged("its end has %d bytes", len(content))
	case le.Uint64(content) != uint64(sections) || sections == 0:
		return damaged("%d sections of %d", sections, le.Uint64(content))
	case le.Uint64(content[8:]) != sum:
		return damaged("the checksum of the whole is wrong")
	case at != f.Bytes:
		return damaged("%d bytes follow its end", f.Bytes-at)
	}
	return nil
}
