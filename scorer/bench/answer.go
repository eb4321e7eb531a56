package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// maxAnswer bounds the answer that a lean caller reads.
const maxAnswer = 64 << 20

// errAnswer is what came and is no answer of HTTP/1.1.
var errAnswer = errors.New("no HTTP/1.1 answer")

// answer understands an answer of HTTP/1.1 as its bytes come. Its memory is used for the next one again.
type answer struct {
	raw  []byte // what came
	at   int    // of raw: so far it is understood
	part part

	status  string // "200", or whatever it is
	keep    bool   // whether the connection may be used again
	chunked bool
	left    int    // of the body, or of the chunk
	body    []byte // lies in raw unless it came in chunks
	pieces  []byte // chunks, put together
}

// part is what of an answer comes next.
type part uint8

const (
	partStatus part = iota
	partHeader
	partBody
	partChunk    // the line with its length
	partData     // what is in it
	partDataEnd  // the end of line behind it
	partTrailers // to the empty line
	partDone
)

// begin forgets the last answer.
func (a *answer) begin() {
	*a = answer{raw: a.raw[:0], pieces: a.pieces[:0], keep: true}
}

// room is where the next bytes are to be read.
func (a *answer) room() []byte {
	if len(a.raw) == cap(a.raw) {
		a.raw = append(make([]byte, 0, max(16<<10, 2*cap(a.raw))), a.raw...)
	}
	return a.raw[len(a.raw):cap(a.raw)]
}

// took says that so many bytes were read into room, and whether the answer is complete.
func (a *answer) took(n int) (done bool, err error) {
	a.raw = a.raw[:len(a.raw)+n]
	for a.part != partDone {
		more, err := a.step()
		if err != nil || !more {
			return false, err
		}
		if len(a.raw) > maxAnswer {
			return false, fmt.Errorf("%w: over %d bytes", errAnswer, maxAnswer)
		}
	}
	if a.at != len(a.raw) {
		return false, fmt.Errorf("%w: %d bytes behind it", errAnswer, len(a.raw)-a.at)
	}
	return true, nil
}

// step understands the next part; it says no if that has not come whole.
func (a *answer) step() (ok bool, err error) {
	switch a.part {
	case partBody, partData:
		return a.data(), nil
	}
	end := bytes.IndexByte(a.raw[a.at:], '\n')
	if end < 0 {
		if len(a.raw)-a.at > 64<<10 {
			return false, fmt.Errorf("%w: a line without an end", errAnswer)
		}
		return false, nil
	}
	line := bytes.TrimRight(a.raw[a.at:a.at+end], "\r")
	a.at += end + 1
	switch a.part {
	case partStatus:
		if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
			return false, fmt.Errorf("%w: %.40q", errAnswer, line)
		}
		if a.status = "200"; string(line[9:12]) != "200" {
			a.status = string(line[9:12])
		}
		a.part, a.left = partHeader, -1
	case partHeader:
		err = a.header(line)
	case partChunk:
		n, bad := strconv.ParseUint(string(line), 16, 31)
		if bad != nil {
			return false, fmt.Errorf("%w: chunk %.40q", errAnswer, line)
		}
		if a.left, a.part = int(n), partData; n == 0 {
			a.part = partTrailers
		}
	case partDataEnd:
		a.part = partChunk
	case partTrailers:
		if len(line) == 0 {
			a.body, a.part = a.pieces, partDone
		}
	}
	return err == nil, err
}

// data takes what is left of the body or of a chunk once it is there.
func (a *answer) data() bool {
	if len(a.raw)-a.at < a.left {
		return false
	}
	data := a.raw[a.at : a.at+a.left]
	a.at += a.left
	if a.part == partBody {
		a.body, a.part = data, partDone
		return true
	}
	a.pieces = append(a.pieces, data...)
	a.part = partDataEnd
	return true
}

// header reads one line of the head, or its end.
func (a *answer) header(line []byte) (err error) {
	if len(line) == 0 {
		switch {
		case a.chunked:
			a.part = partChunk
		case a.left < 0:
			return fmt.Errorf("%w: one without a length", errAnswer)
		default:
			a.part = partBody
		}
		return nil
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		if a.left, err = strconv.Atoi(string(value)); err != nil || a.left < 0 || a.left > maxAnswer {
			return fmt.Errorf("%w: length %.40q", errAnswer, value)
		}
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		a.chunked = bytes.EqualFold(value, []byte("chunked"))
	case bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")):
		a.keep = false
	}
	return nil
}
