package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/indexer"
)

const (
	magic     = "kvscsnap"
	orderMark = 0x01020304
	version   = 1

	headerBytes  = 40
	sectionBytes = 16 // before the content
	sumBytes     = 8
	endBytes     = 16
)

// kinds of sections.
const (
	kindFleet  = 1
	kindStream = 2
	kindEnd    = 3
)

// Writer writes one file. It is made by Write.
type Writer struct {
	out      *bufio.Writer
	whole    *xxhash.Digest // of all that was written
	section  *xxhash.Digest
	sections uint64
	bytes    int64
	enc      encoder
}

// Write makes the file at path from what fill writes, and returns its size. Under that name there is the old file until
// the new one is complete and on disk; if anything fails the old one stays. The directory must exist.
func Write(path string, fingerprint uint64, fill func(*Writer) error) (size int64, err error) {
	temp := Temp(path)
	// What an earlier process left half written is overwritten.
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(temp))
		}
	}()
	w := &Writer{out: bufio.NewWriterSize(file, 1<<20), whole: xxhash.New(), section: xxhash.New()}
	if err := w.write(fingerprint, fill); err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	if err := file.Sync(); err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	if err := file.Close(); err != nil {
		return 0, errors.Join(fmt.Errorf("snapshot: %w", err), os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return 0, errors.Join(fmt.Errorf("snapshot: %w", err), os.Remove(temp))
	}
	return w.bytes, syncDir(filepath.Dir(path))
}

// Temp is the name under which the file at path is written.
func Temp(path string) string { return path + ".tmp" }

// syncDir makes a rename in a directory last.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

func (w *Writer) write(fingerprint uint64, fill func(*Writer) error) error {
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint32(b, orderMark)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(time.Now().UnixNano()))
	b = binary.LittleEndian.AppendUint64(b, fingerprint)
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	if err := w.put(b); err != nil {
		return err
	}
	if err := fill(w); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint64(nil, w.sections)
	end = binary.LittleEndian.AppendUint64(end, w.whole.Sum64())
	if err := w.put(w.frame(kindEnd, end)...); err != nil {
		return err
	}
	return w.out.Flush()
}

// Fleet writes the fleet's text, which must be the first thing written.
func (w *Writer) Fleet(text []byte) error {
	if w.sections > 0 {
		return errors.New("the fleet comes first")
	}
	w.sections++
	return w.put(w.frame(kindFleet, text)...)
}

// Stream writes what one stream saved.
func (w *Writer) Stream(s *indexer.Saved) error {
	if w.sections == 0 {
		return errors.New("the fleet comes first")
	}
	content, err := w.enc.stream(s)
	if err != nil {
		return err
	}
	w.sections++
	return w.put(w.frame(kindStream, content)...)
}

// frame is the parts of a section.
func (w *Writer) frame(kind uint32, content []byte) [][]byte {
	head := binary.LittleEndian.AppendUint32(nil, kind)
	head = binary.LittleEndian.AppendUint32(head, 0)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(content)))
	w.section.Reset()
	_, _ = w.section.Write(head) // a hash takes everything
	_, _ = w.section.Write(content)
	return [][]byte{head, content, binary.LittleEndian.AppendUint64(nil, w.section.Sum64())}
}

func (w *Writer) put(parts ...[]byte) error {
	for _, p := range parts {
		_, _ = w.whole.Write(p)
		n, err := w.out.Write(p)
		w.bytes += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}
