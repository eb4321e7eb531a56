package recording

import (
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"
)

// cborMap is the first byte of a raw sequence: its header is a map of three pairs.
const cborMap = 0xa3

// itemReader reads the items of a CBOR sequence.
type itemReader struct {
	in  meter
	dec *cbor.Decoder
	max int
	// lost is set behind an item whose end cannot be found: nothing more can be read.
	lost bool
}

// meter gives the decoder at most left bytes, which bounds what the decoder gathers for one item.
type meter struct {
	io.Reader
	left int
	err  error // of the reader, other than io.EOF
}

func (m *meter) Read(b []byte) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.Reader.Read(b[:min(len(b), m.left)])
	m.left -= n
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

func newItemReader(in io.Reader, max int) *itemReader {
	r := &itemReader{in: meter{Reader: in}, max: max}
	r.dec = decMode.NewDecoder(&r.in)
	return r
}

// offset is where the next item begins, in bytes from the start.
func (r *itemReader) offset() int64 { return int64(r.dec.NumBytesRead()) }

// next reads one item. It errs with io.EOF between items, io.ErrUnexpectedEOF inside one, with the input's error, or
// with the decoder's, of which only the last leaves more to read, unless lost is set.
func (r *itemReader) next() (*wireRecord, error) {
	r.in.left = r.max
	before := r.offset()
	w := new(wireRecord)
	err := r.dec.Decode(w)
	if err == nil || err == io.EOF {
		return w, err
	}
	r.lost = r.offset() == before
	if err == io.ErrUnexpectedEOF && r.in.left == 0 {
		err = fmt.Errorf("over %d bytes", r.max)
	}
	return w, err
}
