package e2e

import "testing"

// wire is one source fed with batches written out as in the catalogue of cases.
type wire struct {
	*engine
	s *server
	t *testing.T
}

func newWire(t *testing.T) *wire {
	t.Helper()
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w1"})
	s := serveFleet(t, []*engine{e})
	e.hello(s)
	return &wire{e, s, t}
}

// values publishes values as batches and waits for the last.
func (w *wire) values(batches ...any) {
	w.t.Helper()
	var last result
	for _, b := range batches {
		last = w.do(obj{"op": "value", "value": b})
	}
	w.s.reached(w.t, "w1", 0, last.Seq)
}

type list = []any

func (w *wire) want(what string, tokens []uint32, want answer) {
	w.t.Helper()
	same(w.t, what, w.s.score(w.t, "w1", tokens), want)
}

// Case1: array events and map events in one stream, map keys in any order, a key that nobody knows.
func TestCase1_ArraysAndMaps(t *testing.T) {
	w := newWire(t)
	w.values(
		list{1.5, list{list{"BlockStored", list{101}, nil, span(1, 4), 4, nil, "GPU"}}},
		list{1.5, list{obj{"what": list{1, obj{}}, "token_ids": span(5, 8), "parent_block_hash": 101, "block_size": 4,
			"block_hashes": list{102}, "type": "BlockStored"}}, nil},
	)
	w.want("both", span(1, 9), answer{8, 8, exact, ""})
}

// Case21: an undecodable message costs itself; the connection stays; batches of 2 and of 3 elements.
func TestCase21_GarbageBetween(t *testing.T) {
	w := newWire(t)
	before := w.s.stats(t, "w1", 0)
	w.values(list{1.5, list{list{"BlockStored", list{101}, nil, span(1, 4), 4, nil}}, 0})
	w.do(obj{"op": "payload", "data": "kwE="}) // 93 01
	w.values(list{1.5, list{list{"BlockStored", list{102}, 101, span(5, 8), 4, nil}}})
	w.want("around the garbage", span(1, 9), answer{8, 8, estimate, "EVENTS_UNREAD"})
	after := w.s.stats(t, "w1", 0)
	if after.Rejected["bad_payload"] != 1 || after.Connections != before.Connections || after.Gaps != 0 {
		t.Errorf("one bad payload and the same connection wanted: %v", after)
	}
}

// Case46: an unknown event costs itself.
func TestCase46_UnknownEvent(t *testing.T) {
	w := newWire(t)
	w.values(list{1.5, list{
		obj{"type": "BlockStored", "block_hashes": list{101}, "parent_block_hash": nil, "token_ids": span(1, 4), "block_size": 4},
		obj{"type": "BlockPinned", "block_hashes": "x", "why": list{}},
		obj{"type": "BlockStored", "block_hashes": list{102}, "parent_block_hash": 101, "token_ids": span(5, 8), "block_size": 4},
	}, 0})
	w.want("around the unknown", span(1, 9), answer{8, 8, estimate, "EVENTS_UNREAD"})
	if st := w.s.stats(t, "w1", 0); st.Rejected["unknown_event"] != 1 || st.StoredEvents != 2 {
		t.Errorf("got %v", st)
	}
}

// Case54: short events mean their defaults; a number where a medium should be is no medium.
func TestCase54_ShortEvents(t *testing.T) {
	w := newWire(t)
	w.values(
		list{1.5, list{list{"BlockStored", list{101, 102}, nil, span(1, 8), 4, nil}}},
		list{1.5, list{list{"BlockRemoved", list{102}, 0}}},
	)
	w.want("slot 2 is no medium", span(1, 9), answer{8, 8, estimate, "EVENTS_UNREAD"})
	w.values(list{1.5, list{list{"BlockRemoved", list{102}}}})
	w.want("short removal", span(1, 9), answer{4, 4, estimate, "EVENTS_UNREAD"})
	if st := w.s.stats(t, "w1", 0); st.Rejected["bad_event"] != 1 {
		t.Errorf("got %v", st)
	}
	// A clear ends every doubt.
	w.values(list{1.5, list{list{"AllBlocksCleared"}}})
	w.want("cleared", span(1, 9), answer{0, 0, exact, ""})
}

// Case120: messages of other shapes are counted, and the numbers around them are whole.
func TestCase120_Frames(t *testing.T) {
	w := newWire(t)
	w.values(list{1.5, list{list{"BlockStored", list{101}, nil, span(1, 4), 4, nil}}})
	before := w.s.stats(t, "w1", 0).Rejected
	payload := []byte{0x92, 0x01, 0x90}
	w.do(sent(payload))
	w.do(sent([]byte("kv"), payload))
	w.do(sent([]byte("kv"), []byte{0, 0, 0, 1}, payload))
	w.values(list{1.5, list{list{"BlockStored", list{102}, 101, span(5, 8), 4, nil}}})
	w.want("around bad frames", span(1, 9), answer{8, 8, exact, ""})
	st := w.s.stats(t, "w1", 0)
	if st.Rejected["bad_frames"] != before["bad_frames"]+2 || st.Rejected["bad_sequence"] != 1 || st.Gaps != 0 {
		t.Errorf("2 bad frames more and 1 bad sequence wanted: %v, before %v", st, before)
	}
}
