package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTrace is a trace that cannot be used.
var ErrTrace = errors.New("bad trace")

// Bounds of a trace.
const (
	maxTraceLine   = 1 << 20 // bytes
	maxTraceBlocks = 1 << 24 // of all requests
	maxTraceID     = 1<<26 - 1
)

// Trace is a list of requests, each a chain of block ids.
type Trace struct {
	chains [][]uint32
	blocks int    // of all chains
	ids    uint32 // the largest id + 1
}

// ReadTrace reads JSON lines whose hash_ids list the blocks of a request; other fields are not looked at. It errs with
// ErrTrace, naming the line, if a line cannot be read, the trace is over its bounds, or an id stands behind two
// different ids: ids must name whole prefixes.
func ReadTrace(r io.Reader) (*Trace, error) {
	t := &Trace{}
	before := make(map[uint32]uint32)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxTraceLine)
	for n := 1; lines.Scan(); n++ {
		var line struct {
			HashIDs []uint32 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("%w: line %d: %v", ErrTrace, n, err)
		}
		if err := t.add(line.HashIDs, before); err != nil {
			return nil, fmt.Errorf("%w: line %d: %v", ErrTrace, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %v", ErrTrace, len(t.chains)+1, err)
	}
	if t.blocks == 0 {
		return nil, fmt.Errorf("%w: no blocks", ErrTrace)
	}
	return t, nil
}

func (t *Trace) add(chain []uint32, before map[uint32]uint32) error {
	parent := noBlock
	for _, id := range chain {
		if id > maxTraceID {
			return fmt.Errorf("id %d is over %d", id, maxTraceID)
		}
		if p, ok := before[id]; ok && p != parent {
			return fmt.Errorf("id %d stands behind two different ids", id)
		}
		before[id] = parent
		parent = id
		t.ids = max(t.ids, id+1)
	}
	t.chains = append(t.chains, chain)
	if t.blocks += len(chain); t.blocks > maxTraceBlocks {
		return fmt.Errorf("over %d blocks", maxTraceBlocks)
	}
	return nil
}
