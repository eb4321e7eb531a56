package token

import "fmt"

// encoder is the state of one Encode. It is used by one goroutine at a time and kept for the next.
type encoder struct {
	t       *Tokenizer
	cache   *cache
	ids     []uint32
	symbols []uint32 // of the word at hand
	queue   queue
	matcher matcher
}

// Fuel of the patterns for a text: a multiple of what real patterns take on the worst texts known.
const (
	fuelPerText = 10_000
	fuelPerByte = 100
)

func newMatcher(bytes int) matcher { return matcher{fuel: fuelPerText + fuelPerByte*bytes} }

// text appends the ids of s: added tokens first, then those in the normalized rest, then words.
func (e *encoder) text(s string) error {
	a := e.t.added
	return a.split(s, a.raw, func(part string, at int, added *addedToken) error {
		if added != nil {
			e.ids = append(e.ids, added.ID)
			return nil
		}
		first := at == 0
		part, err := e.t.normalizer.apply(part, &e.matcher)
		if err != nil {
			return err
		}
		return a.split(part, a.normalized, func(part string, at int, added *addedToken) error {
			if added != nil {
				e.ids = append(e.ids, added.ID)
				return nil
			}
			return e.words(part, first && at == 0, 0)
		})
	})
}

// spent is the error of a pattern that ran out of fuel.
func (e *encoder) spent() error {
	if e.matcher.fuel >= 0 {
		return nil
	}
	return fmt.Errorf("%w: a pattern of the tokenizer takes too many steps on it", ErrTooLong)
}

// words runs the pre-tokenizers from step on, and the model behind the last.
func (e *encoder) words(s string, first bool, step int) error {
	if err := e.spent(); err != nil || s == "" {
		return err
	}
	if step == len(e.t.pre.steps) {
		return e.t.model.word(e, s)
	}
	return e.t.pre.steps[step].cut(&e.matcher, s, first, func(piece string, at int) error {
		return e.words(piece, first && at == 0, step+1)
	})
}
