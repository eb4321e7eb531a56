package events

// BufferedOrder judges the numbers of the buffered events of one engine, and gives each event its place in the stream.
//
// Each attention-DP rank numbers its events from 0 in steps of 1, and the lists that are polled mix ranks. The place of
// an event is the number of events of all ranks before it, lost ones included: with one rank it is the event's number.
// A list is handed out once, so a number that does not rise is a new engine process, whatever its content.
type BufferedOrder struct {
	last map[int]uint64 // by rank
	next uint64
}

// maxOrderRanks bounds the ranks that one engine may name.
const maxOrderRanks = 1024

// BufferedStep is what an event means after the ones before it: StepFirst, StepNext, StepGap or StepReset, never
// StepDuplicate.
type BufferedStep struct {
	Step Step
	// Place is where the event stands. Of StepGap the places From up to Place-1 are lost.
	Place, From uint64
	// Whole says of StepFirst and StepReset that nothing came before the event.
	Whole bool
}

// Accept takes the next event. ok is false for a rank too many, whose event was not taken.
func (o *BufferedOrder) Accept(id BufferedID) (s BufferedStep, ok bool) {
	last, known := o.last[id.Rank]
	s.From = o.next
	switch {
	case known && id.ID <= last:
		o.last = nil
		s = BufferedStep{Step: StepReset, Place: id.ID, Whole: id.ID == 0}
	case len(o.last) == 0:
		s = BufferedStep{Step: StepFirst, Place: id.ID, Whole: id.ID == 0}
	case known:
		s.Place = o.next + (id.ID - last - 1)
	case len(o.last) >= maxOrderRanks:
		return BufferedStep{}, false
	default:
		s.Place = o.next + id.ID
	}
	if s.Step == StepNext && s.Place > s.From {
		s.Step = StepGap
	}
	if o.last == nil {
		o.last = make(map[int]uint64)
	}
	o.last[id.Rank], o.next = id.ID, s.Place+1
	return s, true
}
