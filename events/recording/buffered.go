package recording

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/kvscout/kvscout/events"
)

// bufferedSource is what the events of a file without a description are said to come from.
const bufferedSource = "trtllm/0"

// bufferedForm reads TensorRT-LLM's buffered events as a recording: the lists that get_kv_cache_events or polls of
// /kv_cache_events returned, one after another, or one event a line. They name neither a source nor times, so the source
// is bufferedSource and the time of an event is its number in the file.
type bufferedForm struct {
	in    *events.BufferedReader
	order events.BufferedOrder
	lives int
	n     int64 // records so far
}

func newBufferedForm(in io.Reader, max limits) *bufferedForm {
	return &bufferedForm{in: events.NewBufferedReader(in, max.record, math.MaxInt).Lines()}
}

// opensBuffered says whether an input, which is not empty, begins as buffered events do.
func opensBuffered(in *bufio.Reader) bool {
	head, _ := in.Peek(1)
	if head[0] != '{' {
		return head[0] == '['
	}
	const first = `{"event_id"` // shorter than any line of another form
	head, _ = in.Peek(len(first))
	return string(head) == first
}

func (r *bufferedForm) offset() int64 { return r.in.Offset() }

func (r *bufferedForm) next() (*Record, error) {
	if r.n == 0 {
		r.n++
		src := events.Source{Worker: "trtllm", Engine: events.EngineTRTLLM}
		return &Record{Kind: KindSource, Time: r.n, Source: bufferedSource, Info: &src}, nil
	}
	for {
		event, err := r.in.Next()
		switch {
		case err == io.EOF:
			return nil, io.EOF
		case errors.Is(err, events.ErrTooLarge):
			return nil, fmt.Errorf("%w: byte %d: %v", ErrRecord, r.offset(), err)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: byte %d", ErrTorn, r.offset())
		case errors.Is(err, events.ErrBuffered):
			return nil, fmt.Errorf("%w: byte %d: %v", ErrFormat, r.offset(), err)
		case err != nil:
			return nil, err
		}
		id, empty, err := events.ParseBufferedID(event)
		if empty {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: event that ends at byte %d: %v", ErrRecord, r.offset(), err)
		}
		return r.record(id, event)
	}
}

func (r *bufferedForm) record(id events.BufferedID, event []byte) (*Record, error) {
	step, ok := r.order.Accept(id)
	if !ok {
		return nil, fmt.Errorf("%w: event that ends at byte %d: rank %d is one too many", ErrRecord, r.offset(), id.Rank)
	}
	seq := binary.BigEndian.AppendUint64(nil, step.Place)
	if step.Step == events.StepReset {
		r.lives++
	}
	if r.lives > 0 { // a new life may repeat events byte by byte
		seq = strconv.AppendInt(seq, int64(r.lives), 10)
	}
	r.n++
	return &Record{
		Kind: KindMessage, Time: r.n, Source: bufferedSource, Frames: [][]byte{nil, seq, append([]byte(nil), event...)},
	}, nil
}
