package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// maxFileBytes bounds each file.
const maxFileBytes = 1 << 20

// secretFile is one or more files that are read together, and again when their content changes. They are looked at by
// polling: that sees what notifications miss, such as the swapped links of a mounted Secret.
type secretFile struct {
	name  string // "callers" or "tls"
	paths []string
	// use takes the contents, in the order of paths. What it refuses changes nothing.
	use func(contents [][]byte) error

	mu       sync.Mutex // guards the rest
	seen     [sha256.Size]byte
	loads    uint64
	failures uint64
	fault    string // the last, until something is read without fault
}

// look reads the files and uses what has changed. The error is nil when nothing has, and when the same fault was told before.
func (f *secretFile) look() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents, seen, err := readAll(f.paths)
	if err == nil {
		if seen == f.seen && (f.loads > 0 || f.failures > 0) {
			return false, nil
		}
		if err = f.use(contents); err == nil {
			f.loads, f.fault, f.seen = f.loads+1, "", seen
			return true, nil
		}
	}
	if told := f.fault == err.Error() && seen == f.seen; told {
		return false, nil
	}
	f.failures, f.fault, f.seen = f.failures+1, err.Error(), seen
	return false, err
}

// readAll reads files and their common digest; it is zero with an error.
func readAll(paths []string) (contents [][]byte, digest [sha256.Size]byte, err error) {
	h := sha256.New()
	for _, p := range paths {
		content, err := readFile(p)
		if err != nil {
			return nil, digest, err
		}
		one := sha256.Sum256(content)
		h.Write(one[:])
		contents = append(contents, content)
	}
	return contents, [sha256.Size]byte(h.Sum(nil)), nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(content) > maxFileBytes {
		err = fmt.Errorf("%s: over %d bytes", path, maxFileBytes)
	}
	return content, err
}

// follow looks at the files at each interval until ctx ends.
func follow(ctx context.Context, files []*secretFile, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, f := range files {
			changed, err := f.look()
			if err != nil {
				log.Error("file is wrong, what was read before stays in force", "file", f.name, "error", err)
			} else if changed {
				log.Info("file was read again", "file", f.name)
			}
		}
	}
}
