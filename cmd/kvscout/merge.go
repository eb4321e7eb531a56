package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
)

// merger reads several recordings as one: each file in its own order, and between files by time, then by sequence
// number within one source (case 121). Parts of one recording thus play in order, however they are listed.
type merger struct {
	inputs []*input
	// report is told, once each, of places that could not be read; the rest is read.
	report func(error)
	faults int
}

// input is one file with its next record.
type input struct {
	path string
	r    *recording.Reader
	head *recording.Record // nil at the end
}

// openAll opens recordings. Close it.
func openAll(paths []string, report func(error)) (*merger, error) {
	m := &merger{report: report}
	for _, path := range paths {
		r, err := recording.Open(path)
		if errors.Is(err, recording.ErrTorn) { // nothing of it is left
			m.fault(err)
			continue
		}
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		in := &input{path: path, r: r}
		m.inputs = append(m.inputs, in)
		if err := m.advance(in); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	// Ties between files go to the one that begins first.
	slices.SortStableFunc(m.inputs, func(a, b *input) int {
		switch {
		case a.head == nil || b.head == nil:
			return 0
		case a.head.Time < b.head.Time:
			return -1
		case a.head.Time > b.head.Time:
			return 1
		default:
			return 0
		}
	})
	return m, nil
}

func (m *merger) fault(err error) {
	m.faults++
	m.report(err)
}

// advance reads the next record of in, over places that cannot be read.
func (m *merger) advance(in *input) error {
	for {
		rec, err := in.r.Next()
		switch {
		case err == nil, err == io.EOF:
			in.head = rec
			return nil
		case errors.Is(err, recording.ErrTorn), errors.Is(err, recording.ErrRecord):
			m.fault(fmt.Errorf("%s: %w", in.path, err))
		default:
			return fmt.Errorf("%s: %w", in.path, err)
		}
	}
}

// next returns the next record of all, nil at the end.
func (m *merger) next() (*recording.Record, error) {
	var first *input
	for _, in := range m.inputs {
		if in.head != nil && (first == nil || earlier(in.head, first.head)) {
			first = in
		}
	}
	if first == nil {
		return nil, nil
	}
	rec := first.head
	return rec, m.advance(first)
}

// earlier says whether a goes before b, which is what goes first otherwise.
func earlier(a, b *recording.Record) bool {
	if a.Time != b.Time {
		return a.Time < b.Time
	}
	if a.Kind != recording.KindMessage || b.Kind != recording.KindMessage || a.Source != b.Source {
		return false
	}
	x, errX := events.ParseFrames(a.Frames)
	y, errY := events.ParseFrames(b.Frames)
	return errX == nil && errY == nil && x.Seq < y.Seq
}

func (m *merger) close() error {
	var faults []error
	for _, in := range m.inputs {
		faults = append(faults, in.r.Close())
	}
	return errors.Join(faults...)
}
