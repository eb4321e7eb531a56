package render

import (
	"encoding/json"
	"slices"
)

// Edit says what is changed in a body before it is rendered. Everything else keeps its bytes: order, spelling of
// numbers and escapes, blanks, repeated names.
type Edit struct {
	// Strip names top-level members that are taken out, each as often as it occurs.
	Strip []string
	// Set gives top-level members the value of that JSON text. One that occurs gets it in place, as often as it occurs;
	// one that does not is put in front of the others.
	Set map[string]json.RawMessage
}

// Apply returns body with the edit made, or body itself if it changes nothing. It errs with ErrNoObject.
func (e Edit) Apply(body []byte) ([]byte, error) {
	if len(e.Strip) == 0 && len(e.Set) == 0 {
		return body, nil
	}
	s := splicer{body: body, edit: e, found: make(map[string]bool)}
	if err := EachMember(body, s.member); err != nil {
		return nil, err
	}
	return s.finish(), nil
}

// cut replaces body[from:to] by text.
type cut struct {
	from, to int
	text     []byte
}

type splicer struct {
	body  []byte
	edit  Edit
	cuts  []cut
	found map[string]bool // names of Set that occurred
	any   bool            // a member was kept
	first int             // start of the first member, 0 before it
	gone  int             // where a run of members taken out began, 0 outside of one
	kept  int             // end of the last member kept
	last  int             // end of the last member
}

func (s *splicer) member(m Member) error {
	if s.first == 0 {
		s.first = m.start
	}
	s.last = m.end
	if m.Name != "" && slices.Contains(s.edit.Strip, m.Name) {
		if s.gone == 0 {
			s.gone = m.start
		}
		return nil
	}
	if s.gone != 0 { // the comma before the run stays, the one after it goes
		s.cuts = append(s.cuts, cut{from: s.gone, to: m.start})
		s.gone = 0
	}
	if text, ok := s.edit.Set[m.Name]; ok && m.Name != "" {
		s.found[m.Name] = true
		s.cuts = append(s.cuts, cut{from: m.from, to: m.end, text: text})
	}
	s.any, s.kept = true, m.end
	return nil
}

func (s *splicer) finish() []byte {
	if s.gone != 0 {
		from := s.gone
		if s.any {
			from = s.kept // the comma before goes too
		}
		s.cuts = append(s.cuts, cut{from: from, to: s.last})
	}
	if front := s.front(); front != nil {
		s.cuts = slices.Insert(s.cuts, 0, cut{from: s.at(), to: s.at(), text: front})
	}
	if len(s.cuts) == 0 {
		return s.body
	}
	out := make([]byte, 0, len(s.body)+64)
	at := 0
	for _, c := range s.cuts {
		out = append(append(out, s.body[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, s.body[at:]...)
}

// at is where new members go: before the first, or behind the brace of an object without any.
func (s *splicer) at() int {
	if s.first != 0 {
		return s.first
	}
	for i, c := range s.body {
		if c == '{' {
			return i + 1
		}
	}
	return 0
}

// front is the text of the members that did not occur, by name; nil if there is none.
func (s *splicer) front() []byte {
	var names []string
	for name := range s.edit.Set {
		if !s.found[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []byte
	for i, name := range names {
		quoted, _ := json.Marshal(name) // a string always can be
		out = append(append(append(out, quoted...), ':'), s.edit.Set[name]...)
		if s.any || i+1 < len(names) {
			out = append(out, ',')
		}
	}
	return out
}
