package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// errNotJSON is a line that is no JSON value: damaged or, at the end of a file, cut.
var errNotJSON = errors.New("not JSON")

// lineReader reads the JSON-lines form.
type lineReader struct {
	in   *bufio.Reader
	max  int // bytes of a line
	line []byte
	n    int // of the current line, from 1
	off  int64
}

func (r *lineReader) offset() int64 { return r.off }

func (r *lineReader) next() (*Record, error) {
	for {
		over, err := r.read()
		if err != nil && err != io.EOF {
			return nil, err
		}
		if over {
			return nil, fmt.Errorf("%w: line %d is over %d bytes", ErrRecord, r.n, r.max)
		}
		if len(bytes.TrimSpace(r.line)) == 0 {
			if err != nil {
				return nil, err
			}
			continue
		}
		rec, bad := parseLine(r.line)
		switch {
		case bad == nil:
			return rec, nil
		case err == io.EOF && errors.Is(bad, errNotJSON):
			return nil, fmt.Errorf("%w: line %d", ErrTorn, r.n)
		case errors.Is(bad, errUnknownKind):
			return nil, bad
		default:
			return nil, fmt.Errorf("%w: line %d: %v", ErrRecord, r.n, bad)
		}
	}
}

// read reads one line, or says that it was over the bound and passed over. It errs with io.EOF for a line that the end
// of the file ends.
func (r *lineReader) read() (over bool, err error) {
	r.line = r.line[:0]
	r.n++
	for {
		part, err := r.in.ReadSlice('\n')
		r.off += int64(len(part))
		if over = over || len(r.line)+len(part) > r.max; !over {
			r.line = append(r.line, part...)
		}
		if err != bufio.ErrBufferFull {
			return over, err
		}
	}
}

// parseLine makes the record of one line. It errs with errNotJSON, errUnknownKind, or with what is wrong with a field.
func parseLine(line []byte) (*Record, error) {
	if !json.Valid(line) {
		return nil, errNotJSON
	}
	if !utf8.Valid(line) { // the json package would put U+FFFD for it
		return nil, errors.New("not UTF-8")
	}
	f, err := newFields(line)
	if err != nil {
		return nil, err
	}
	name := f.text("kind")
	kind, ok := parseKind(name)
	if f.err == nil && !ok {
		if name == "" {
			return nil, errors.New("kind is missing")
		}
		return nil, errUnknownKind
	}
	rec := &Record{Kind: kind, Time: f.integer("t"), Source: f.text("source")}
	switch kind {
	case KindSource:
		rec.Info = parseInfo(f, rec.Source)
	case KindRequest:
		rec.Request = parseRequest(f)
	case KindNote:
		rec.Text = f.text("text")
	default:
		rec.Frames = f.frames("frames")
		rec.Client = f.text("client")
	}
	if f.err != nil {
		return nil, f.err
	}
	return rec, rec.check()
}
