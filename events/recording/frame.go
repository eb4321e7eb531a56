package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	frameMagic    = 0xfd2fb528
	skipMagic     = 0x184d2a50 // the last four bits are free
	skipMagicMask = 0xfffffff0
)

// opensFrame says whether head, the first bytes of a file and at most four, may begin a Zstandard frame.
func opensFrame(head []byte) bool {
	if len(head) == 4 {
		m := binary.LittleEndian.Uint32(head)
		return m == frameMagic || m&skipMagicMask == skipMagic
	}
	full := binary.LittleEndian.AppendUint32(nil, frameMagic)
	return bytes.HasPrefix(full, head)
}

// frameReader cuts a file into its Zstandard frames (RFC 8878, section 3.1.1) and decompresses each as a whole. It
// walks the headers of blocks itself: the stream decoder would hand out bytes before it has seen their checksum, and
// could not go on behind a damaged frame.
type frameReader struct {
	in    *bufio.Reader
	zstd  *zstd.Decoder
	max   int // bytes of a frame, stored or decompressed
	off   int64
	start int64 // of the frame that was returned or refused last
	ended bool  // behind bytes that are no frame

	packed  []byte // the current frame as stored, while it is within max
	over    bool   // it is not
	content []byte
}

func newFrameReader(in *bufio.Reader, max int) (*frameReader, error) {
	// One at a time: DecodeAll then runs in the caller, and no goroutine is started.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max)))
	if err != nil {
		return nil, err
	}
	return &frameReader{in: in, zstd: dec, max: max}, nil
}

// next returns the content of the next frame, good until the next call. It errs with io.EOF at the end, with ErrTorn
// in the middle of a frame, with ErrRecord for a frame that is damaged or too large, or as the input does.
func (f *frameReader) next() ([]byte, error) {
	for !f.ended {
		f.start, f.packed, f.over = f.off, f.packed[:0], false
		skip, err := f.scan()
		switch {
		case err == io.EOF && f.off == f.start:
			return nil, io.EOF
		case err == io.EOF:
			return nil, fmt.Errorf("%w: frame at byte %d", ErrTorn, f.start)
		case err != nil:
			return nil, err
		case skip:
			continue
		case f.over:
			return nil, fmt.Errorf("%w: frame at byte %d is over %d bytes (decompress the file first)", ErrRecord, f.start, f.max)
		}
		f.content, err = f.zstd.DecodeAll(f.packed, f.content[:0])
		if err != nil {
			return nil, fmt.Errorf("%w: frame at byte %d: %v", ErrRecord, f.start, err)
		}
		return f.content, nil
	}
	return nil, io.EOF
}

// scan reads one frame into packed. skip tells of a skippable frame, which holds no content.
func (f *frameReader) scan() (skip bool, err error) {
	head, err := f.take(4)
	if err != nil {
		return false, err
	}
	switch m := binary.LittleEndian.Uint32(head); {
	case m&skipMagicMask == skipMagic:
		size, err := f.take(4)
		if err != nil {
			return true, err
		}
		return true, f.discard(int64(binary.LittleEndian.Uint32(size)))
	case m != frameMagic:
		return false, f.end("no Zstandard frame")
	}
	checksum, err := f.scanHeader()
	for last := false; err == nil && !last; {
		last, err = f.scanBlock()
	}
	if err == nil && checksum {
		_, err = f.take(4)
	}
	return false, err
}

// scanHeader reads what follows the magic number, and says whether a checksum ends the frame.
func (f *frameReader) scanHeader() (checksum bool, err error) {
	head, err := f.take(1)
	if err != nil {
		return false, err
	}
	desc := head[0]
	single := desc&0x20 != 0
	size := [4]int{0, 1, 2, 4}[desc&3]    // dictionary id
	size += [4]int{0, 2, 4, 8}[desc>>6&3] // content size
	if !single || desc>>6 == 0 {          // window descriptor, or content size of one byte
		size++
	}
	_, err = f.take(size)
	return desc&4 != 0, err
}

// scanBlock reads one block, and says whether it is the last of its frame.
func (f *frameReader) scanBlock() (last bool, err error) {
	head, err := f.take(3)
	if err != nil {
		return false, err
	}
	word := uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16
	size := int(word >> 3) // below 2 MiB
	switch word >> 1 & 3 {
	case 1: // one byte, repeated size times
		size = 1
	case 3:
		return false, f.end("block of a reserved type")
	}
	_, err = f.take(size)
	return word&1 != 0, err
}

// end gives up on the file: where the next frame begins cannot be told.
func (f *frameReader) end(why string) error {
	f.ended = true
	return fmt.Errorf("%w: byte %d: %s; the rest of the file is not read", ErrRecord, f.start, why)
}

// take reads n bytes and returns them. They are added to packed or, when that would grow over max, start it anew.
// It errs with io.EOF whenever the input ends.
func (f *frameReader) take(n int) ([]byte, error) {
	if f.over = f.over || len(f.packed)+n > f.max; f.over {
		f.packed = f.packed[:0]
	}
	had := len(f.packed)
	f.packed = append(f.packed, make([]byte, n)...)
	got, err := io.ReadFull(f.in, f.packed[had:])
	f.off += int64(got)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return f.packed[had:], err
}

func (f *frameReader) discard(n int64) error {
	got, err := io.CopyN(io.Discard, f.in, n)
	f.off += got
	return err
}
