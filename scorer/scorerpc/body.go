package scorerpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// bodyFacts is what a body says that decides where its prompt lies. Of a repeated field the last counts, as in Python.
type bodyFacts struct {
	// model and salt are the fields "model" and "cache_salt"; empty if absent or null.
	model, salt string
	// media says that a message has a part of another kind than text.
	media bool
}

// mediaKeys and mediaTypes mark a part that is not text: as a field of the part, as the value of its "type".
var (
	mediaKeys = map[string]bool{
		"image_url": true, "image_pil": true, "image_embeds": true, "input_image": true, "audio_url": true,
		"audio_embeds": true, "input_audio": true, "video_url": true, "video_embeds": true, "input_video": true,
	}
	mediaTypes = map[string]bool{"image": true, "audio": true, "video": true}
)

// maxKey is longer than every name we look for, spelled with escapes only.
const maxKey = 128

// scanBody reads the facts of a JSON body in one pass that keeps nothing else. It trusts whoever renders the body to
// refuse what is no JSON: it is right about every text that Python's json module accepts, and errs with BAD_BODY only
// where it cannot tell the facts. No error quotes the body.
func scanBody(body []byte) (bodyFacts, error) {
	s := bodyScan{rest: bytes.TrimPrefix(body, []byte("\ufeff"))}
	if s.peek() != '{' {
		return bodyFacts{}, badBody("body is no JSON object")
	}
	for len(s.rest) > 0 {
		if err := s.next(); err != nil {
			return bodyFacts{}, err
		}
		if s.depth == 0 {
			break
		}
	}
	if s.peek(); s.depth != 0 || len(s.rest) > 0 {
		return bodyFacts{}, badBody("body is no single JSON object")
	}
	return s.facts, nil
}

func badBody(text string) error { return indexrpc.Failf(indexrpc.ReasonBadBody, "%s", text) }

// bodyScan walks a JSON text. It keeps no stack, so nesting costs nothing: a string is a field's name exactly if a
// colon follows it.
type bodyScan struct {
	rest     []byte
	depth    int
	messages bool // inside the value of "messages"
	facts    bodyFacts
}

// peek skips blanks and returns the next byte; 0 at the end.
func (s *bodyScan) peek() byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	if len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

// next takes one token, or a name with its value if that is a string.
func (s *bodyScan) next() error {
	switch s.peek() {
	case '"':
		text, err := s.text()
		if err != nil || s.peek() != ':' {
			return err
		}
		s.rest = s.rest[1:]
		return s.field(text)
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	}
	if len(s.rest) > 0 {
		s.rest = s.rest[1:]
	}
	return nil
}

// text takes a string and returns it with its quotes.
func (s *bodyScan) text() ([]byte, error) {
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			out := s.rest[:i+1]
			s.rest = s.rest[i+1:]
			return out, nil
		}
	}
	return nil, badBody("body ends inside a string")
}

// field takes the value of a field that matters, if it is a string; the rest is left to next.
func (s *bodyScan) field(quoted []byte) error {
	name := short(quoted)
	if s.depth == 1 {
		s.messages = name == "messages"
	}
	switch {
	case s.depth == 1 && name == "cache_salt":
		return s.readSalt()
	case s.depth == 1 && name == "model":
		return s.readModel()
	case s.messages && mediaKeys[name]:
		s.facts.media = true
	case s.messages && name == "type" && s.peek() == '"':
		value, err := s.text()
		kind := short(value)
		s.facts.media = s.facts.media || mediaKeys[kind] || mediaTypes[kind]
		return err
	}
	return nil
}

func (s *bodyScan) readSalt() error {
	s.facts.salt = ""
	switch s.peek() {
	case 'n': // null
		return nil
	case '"':
	default:
		return badBody("cache_salt is no string")
	}
	quoted, err := s.text()
	if err != nil {
		return err
	}
	// A replacement character may stand for what is no text. Two such salts must not become one.
	salt, ok := unquote(quoted)
	if !ok || strings.ContainsRune(salt, utf8.RuneError) {
		return badBody("cache_salt is no text")
	}
	s.facts.salt = salt
	return nil
}

func (s *bodyScan) readModel() error {
	s.facts.model = ""
	if s.peek() != '"' {
		return nil // the renderer judges it
	}
	quoted, err := s.text()
	if err != nil {
		return err
	}
	model, ok := unquote(quoted)
	if !ok {
		return badBody("model is no text")
	}
	s.facts.model = model
	return nil
}

// short is the text of a quoted string that may be a name we look for; "" for any other.
func short(quoted []byte) string {
	if len(quoted) > maxKey {
		return ""
	}
	text, _ := unquote(quoted)
	return text
}

func unquote(quoted []byte) (string, bool) {
	if len(quoted) < 2 {
		return "", false
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return text, err == nil
}
