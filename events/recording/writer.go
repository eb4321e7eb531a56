package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// frameSize is how many bytes of records make a frame when no Flush comes before: what a cut file loses at most. The
// recordings of test/testdata grow by 1.6 over one frame for a whole file.
const frameSize = 64 << 10

// Writer writes the dump form. Records gather in memory until a frame is full or Flush is called.
type Writer struct {
	w       io.Writer
	file    *os.File // closed by Close; nil when the caller owns w
	zstd    *zstd.Encoder
	records bytes.Buffer // of the open frame, not compressed
	packed  []byte       // reused from frame to frame
	err     error        // the first failure of w; what follows a half-written frame could not be read
}

// Create opens a dump file for writing, readable by its owner only, whatever the file was before (case 119). An
// existing file is emptied.
func Create(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w, err := create(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w.file = file
	return w, nil
}

func create(file *os.File) (*Writer, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() { // a pipe or a device keeps its rights
		if err := file.Chmod(0o600); err != nil {
			return nil, err
		}
		if err := file.Truncate(0); err != nil {
			return nil, err
		}
	}
	return NewWriter(file)
}

// NewWriter writes a dump to w, beginning with its header. Close does not close w.
func NewWriter(w io.Writer) (*Writer, error) {
	// One at a time: EncodeAll then runs in the caller, and no goroutine is started.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithWindowSize(frameSize)) // no more window than a frame needs
	if err != nil {
		return nil, err
	}
	d := &Writer{w: w, zstd: enc}
	if err := encMode.MarshalToBuffer(&wireRecord{Magic: magicText, Version: version}, &d.records); err != nil {
		return nil, err
	}
	return d, d.Flush()
}

// Write adds r, which it does not keep. It errs with ErrRecord, having written nothing, for a record that could not be
// read back; any other error is the file's and stays.
func (w *Writer) Write(r *Record) error {
	if w.err != nil {
		return w.err
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("%w: %v: %v", ErrRecord, r.Kind, err)
	}
	before := w.records.Len()
	err := encMode.MarshalToBuffer(toWire(r), &w.records)
	if size := w.records.Len() - before; err == nil && size > maxRecord {
		err = fmt.Errorf("%d bytes, at most %d are kept", size, maxRecord)
	}
	if err != nil {
		w.records.Truncate(before)
		return fmt.Errorf("%w: %v: %v", ErrRecord, r.Kind, err)
	}
	if w.records.Len() >= frameSize {
		return w.Flush()
	}
	return nil
}

// Flush ends the open frame, so that everything written so far can be read, and survives a later cut.
func (w *Writer) Flush() error {
	if w.err != nil || w.records.Len() == 0 {
		return w.err
	}
	w.packed = w.zstd.EncodeAll(w.records.Bytes(), w.packed[:0])
	w.records.Reset()
	_, w.err = w.w.Write(w.packed)
	return w.err
}

// Close flushes, and closes the file that Create opened. The Writer is of no use afterwards.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	if w.err == nil {
		w.err = os.ErrClosed
	}
	return err
}
