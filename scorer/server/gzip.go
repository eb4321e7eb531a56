package server

import (
	"compress/gzip"
	"errors"
	"io"

	"connectrpc.com/connect"
)

var errInflated = errors.New("message inflates over its limit")

// withGzip is connect's gzip, except that a message which inflates beyond max bytes is given up there. Connect would
// refuse it too, but only after inflating all of it to tell its size: a thousand times what was sent.
func withGzip(maxBytes int) connect.HandlerOption {
	return connect.WithCompression("gzip",
		func() connect.Decompressor { return &inflater{max: int64(maxBytes)} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) },
	)
}

// inflater is a gzip reader that stops soon after max bytes.
type inflater struct {
	gzip.Reader
	max, left int64
}

// Reset implements connect.Decompressor.
func (i *inflater) Reset(r io.Reader) error {
	i.left = i.max + 1 // the one by which connect sees that the limit is passed
	return i.Reader.Reset(r)
}

func (i *inflater) Read(p []byte) (int, error) {
	if i.left <= 0 {
		return 0, errInflated
	}
	n, err := i.Reader.Read(p[:min(int64(len(p)), i.left)])
	i.left -= int64(n)
	return n, err
}
