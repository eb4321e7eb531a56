package events

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestBufferedReader(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // elements joined by |
		err  error
	}{
		{`[]`, "", io.EOF},
		{" [ {\"a\":\"]}\\\"\"} , [1,{}],\n2, \"x,\" ,null ] \n", `{"a":"]}\""}|[1,{}]|2|"x," |null `, io.EOF},
		{`[{}`, "{}", ErrBuffered},
		{`[{`, "", ErrBuffered},
		{`[{}]x`, "{}", ErrBuffered},
		{`{}`, "", ErrBuffered},
		{``, "", ErrBuffered},
		{`["` + strings.Repeat("a", 200) + `"]`, "", ErrBuffered}, // over the bound of the answer
		{`[{"a": "` + strings.Repeat("a", 50) + `"},{}]`, "large|{}", io.EOF},
		{"[{}]\n[{}]", "{}", ErrBuffered},
	} {
		s := NewBufferedReader(strings.NewReader(tt.text), 20, 100)
		var got []string
		var err error
		for {
			var event []byte
			if event, err = s.Next(); errors.Is(err, ErrTooLarge) {
				event = []byte("large")
			} else if err != nil {
				break
			}
			got = append(got, string(event))
		}
		if strings.Join(got, "|") != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v", tt.text, got, err)
		}
	}
}

// A file holds one list after another, or bare events.
func TestBufferedReader_Lines(t *testing.T) {
	r := NewBufferedReader(strings.NewReader("[]\n[{\"a\":1}, {}]\n{\"b\":2}\n\n"), 20, 100).Lines()
	for _, want := range []string{`{"a":1}`, "{}", `{"b":2}`} {
		if got, err := r.Next(); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if _, err := r.Next(); err != io.EOF || r.Offset() != 26 {
		t.Errorf("the end: %v, %d", err, r.Offset())
	}
}

// Rules 8 and 11: ranks number their events each for itself; a place counts them all.
func TestRule8_BufferedOrder(t *testing.T) {
	var o BufferedOrder
	for i, tt := range []struct {
		rank int
		id   uint64
		want BufferedStep
	}{
		{0, 0, BufferedStep{Step: StepFirst, Whole: true}},
		{1, 0, BufferedStep{Place: 1, From: 1}},
		{1, 1, BufferedStep{Place: 2, From: 2}},
		{0, 3, BufferedStep{Step: StepGap, Place: 5, From: 3}},
		{2, 1, BufferedStep{Step: StepGap, Place: 7, From: 6}},
		{1, 2, BufferedStep{Place: 8, From: 8}},
		{1, 2, BufferedStep{Step: StepReset, Place: 2}},
		{0, 0, BufferedStep{Place: 3, From: 3}},
		{0, 0, BufferedStep{Step: StepReset, Whole: true}},
	} {
		if got, ok := o.Accept(BufferedID{ID: tt.id, Rank: tt.rank}); !ok || got != tt.want {
			t.Errorf("event %d: %+v, want %+v", i, got, tt.want)
		}
	}
	for rank := range maxOrderRanks + 1 {
		if _, ok := o.Accept(BufferedID{ID: 1, Rank: rank}); ok == (rank >= maxOrderRanks) {
			t.Errorf("rank %d: %v", rank, ok)
		}
	}
}
