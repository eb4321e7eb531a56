package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// header tells whether the header of a dump was read, and takes the ones that follow where dumps were joined.
type header struct{ seen bool }

// record makes the record that item w stands for, or none for a header. err is what reading w gave. It errs with
// ErrFormat, with errUnknownKind, or with a fault for refuse.
func (h *header) record(w *wireRecord, err error) (*Record, error) {
	if err != nil {
		if !h.seen {
			return nil, fmt.Errorf("%w: no header: %v", ErrFormat, err)
		}
		return nil, err
	}
	if !h.seen || w.Kind == uint64(kindHeader) {
		h.seen = true
		return nil, w.checkHeader()
	}
	return w.record()
}

// refuse makes an ErrRecord of a fault at a place, and leaves alone what is no fault of one record.
func refuse(err error, place string) error {
	if errors.Is(err, ErrFormat) || errors.Is(err, errUnknownKind) {
		return err
	}
	return fmt.Errorf("%w: %s: %v", ErrRecord, place, err)
}

// dumpReader reads the dump form, a frame at a time.
type dumpReader struct {
	frames *frameReader
	items  *itemReader // of the current frame
	header header
	max    int // bytes of a record
}

func newDumpReader(in *bufio.Reader, max limits) (*dumpReader, error) {
	frames, err := newFrameReader(in, max.frame)
	if err != nil {
		return nil, err
	}
	d := &dumpReader{frames: frames, max: max.record}
	d.enter(nil)
	return d, nil
}

func (d *dumpReader) enter(frame []byte) { d.items = newItemReader(bytes.NewReader(frame), d.max) }

func (d *dumpReader) offset() int64 { return d.frames.off }

func (d *dumpReader) next() (*Record, error) {
	for {
		at := d.items.offset()
		w, err := d.items.next()
		if err == io.EOF {
			frame, err := d.frames.next()
			if err != nil {
				return nil, err
			}
			d.enter(frame)
			continue
		}
		if d.items.lost {
			d.enter(nil) // the rest of this frame; the next one stands by itself
		}
		rec, err := d.header.record(w, err)
		if err != nil {
			return nil, refuse(err, fmt.Sprintf("frame at byte %d, byte %d in it", d.frames.start, at))
		}
		if rec != nil {
			return rec, nil
		}
	}
}

// rawReader reads a CBOR sequence that is not compressed.
type rawReader struct {
	items  *itemReader
	header header
}

func newRawReader(in io.Reader, max limits) *rawReader {
	return &rawReader{items: newItemReader(in, max.record)}
}

func (d *rawReader) offset() int64 { return d.items.offset() }

func (d *rawReader) next() (*Record, error) {
	for !d.items.lost {
		at := d.items.offset()
		w, err := d.items.next()
		switch {
		case err == io.EOF || err != nil && err == d.items.in.err:
			return nil, err
		case err == io.ErrUnexpectedEOF:
			return nil, fmt.Errorf("%w: record at byte %d", ErrTorn, at)
		}
		rec, err := d.header.record(w, err)
		if err != nil {
			return nil, refuse(err, fmt.Sprintf("byte %d", at))
		}
		if rec != nil {
			return rec, nil
		}
	}
	return nil, io.EOF
}
