package server

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	leastBuffer = 10 // sizes are powers of two: 1 KiB,
	mostBuffer  = 20 // to 1 MiB
)

// bufferPool keeps buffers for grpc-go, which writes all of a buffer before it reads it. Unlike grpc-go's own pool it does
// not clear them first: there that is 16 KiB for each frame, and 1 MiB for each message over 32 KiB.
type bufferPool [mostBuffer - leastBuffer + 1]sync.Pool

var buffers mem.BufferPool = new(bufferPool)

// Get implements mem.BufferPool.
func (p *bufferPool) Get(n int) *[]byte {
	class := max(bits.Len(uint(max(n, 1)-1)), leastBuffer)
	if class > mostBuffer {
		b := make([]byte, n)
		return &b
	}
	b, ok := p[class-leastBuffer].Get().(*[]byte)
	if !ok {
		made := make([]byte, 1<<class)
		b = &made
	}
	*b = (*b)[:n]
	return b
}

// Put implements mem.BufferPool. What it was not asked for, it keeps if it fits.
func (p *bufferPool) Put(b *[]byte) {
	if class := bits.Len(uint(cap(*b))) - 1; class >= leastBuffer && class <= mostBuffer {
		p[class-leastBuffer].Put(b)
	}
}
