package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// form reads one of the forms of a recording. Its errors are those of Reader.Next, with errUnknownKind besides.
type form interface {
	next() (*Record, error)
	offset() int64
}

// Reader reads a recording in any of its forms.
type Reader struct {
	form    form
	file    *os.File // nil when the caller owns the input
	size    int64
	unknown int
	err     error // what Next answers from now on
}

// limits are what a reader takes at most, in bytes.
type limits struct {
	record int // one record or line
	frame  int // one frame, as stored and as decompressed
}

var defaultLimits = limits{record: maxRecord, frame: maxRecord + 8<<20}

// Open opens a recording. It errs as the file system does, or with ErrFormat or ErrTorn.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	r.file = file
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		r.size = info.Size()
	}
	return r, nil
}

// NewReader reads a recording from in, whose first bytes tell the form: a Zstandard frame (dump), a CBOR map (raw
// sequence), TensorRT-LLM's buffered events, or JSON lines. It errs with ErrFormat when they tell none, with ErrTorn when there are none. From an input that
// blocks, such as a pipe, records come as soon as their frame or line has arrived.
func NewReader(in io.Reader) (*Reader, error) {
	return newReader(in, defaultLimits)
}

func newReader(in io.Reader, max limits) (*Reader, error) {
	buf := bufio.NewReaderSize(in, 64<<10)
	head, err := buf.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case len(head) == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrTorn)
	case opensFrame(head):
		dump, err := newDumpReader(buf, max)
		return &Reader{form: dump}, err
	case opensBuffered(buf):
		return &Reader{form: newBufferedForm(buf, max)}, nil
	case head[0] == cborMap:
		return &Reader{form: newRawReader(buf, max)}, nil
	case bytes.ContainsRune([]byte("{ \t\r\n"), rune(head[0])):
		return &Reader{form: &lineReader{in: buf, max: max.record}}, nil
	default:
		return nil, fmt.Errorf("%w: it begins with % x", ErrFormat, head)
	}
}

// Next returns the next record, or io.EOF behind the last one.
//
// An error that wraps ErrRecord tells of one place that cannot be used, and one that wraps ErrTorn, once, that the
// recording ends in the middle of something. After either, call Next again: it returns what is left, then io.EOF. Any
// other error (ErrFormat, or the input's own) ends the reading and is returned from then on.
func (r *Reader) Next() (*Record, error) {
	for r.err == nil {
		rec, err := r.form.next()
		switch {
		case err == nil:
			return rec, nil
		case errors.Is(err, errUnknownKind):
			r.unknown++
		case errors.Is(err, ErrTorn):
			r.err = io.EOF
			return nil, err
		case errors.Is(err, ErrRecord):
			return nil, err
		default:
			r.err = err
		}
	}
	return nil, r.err
}

// Unknown is the number of records skipped so far because their kind is one of a later version.
func (r *Reader) Unknown() int { return r.unknown }

// Offset is the number of bytes of the file that have been used up. In a dump it moves frame by frame.
func (r *Reader) Offset() int64 { return r.form.offset() }

// Size is the length of the file in bytes, 0 when it is not known.
func (r *Reader) Size() int64 { return r.size }

// Close closes what Open opened.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = os.ErrClosed
	}
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
