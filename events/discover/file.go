package discover

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// DefaultPoll is how often a file is looked at.
const DefaultPoll = 2 * time.Second

// maxFile bounds a file in bytes.
const maxFile = 64 << 20

// File is a Discoverer that reads its workers from a file, again whenever its content changes. It is read by polling:
// that sees what notifications miss, such as the swapped links of a mounted ConfigMap and network file systems. A file
// that cannot be read or is wrong leaves what the last good one said.
type File struct {
	Path string
	// Parse reads the workers from the content.
	Parse func(content []byte) ([]Worker, error)
	// Poll is the time between two looks; 0 is DefaultPoll.
	Poll time.Duration
}

// Name implements Discoverer.
func (f *File) Name() string { return "file" }

// Run implements Discoverer.
func (f *File) Run(ctx context.Context, r Reporter) error {
	poll := f.Poll
	setDuration(&poll, DefaultPoll)
	var known []byte
	failed, first := "", true
	for {
		content, err := readFile(f.Path)
		switch {
		case err != nil:
			if err.Error() != failed { // told once, not at each look
				failed = err.Error()
				r.Failed(err)
			}
		case first || failed != "" || !bytes.Equal(content, known):
			known, failed, first = content, "", false
			f.report(content, r)
		}
		if !sleep(ctx, poll) {
			return ctx.Err()
		}
	}
}

func (f *File) report(content []byte, r Reporter) {
	list, err := f.Parse(content)
	if err != nil {
		r.Failed(fmt.Errorf("%s: %w", f.Path, err))
		return
	}
	r.Workers(list)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s: over %d bytes", path, maxFile)
	}
	return content, err
}
