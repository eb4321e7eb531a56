package plain

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxHead bounds a head, in bytes. A longer one is not plain.
const maxHead = 8 << 10

// Head is what the head of a request says.
type Head struct {
	// Path and Kind, its content type, are of those that Options name.
	Path, Kind string
	// Length is of the body, in bytes.
	Length int
	// Timeout is Connect-Timeout-Ms; 0 without one.
	Timeout time.Duration
	// Gzip says that an answer may be compressed so.
	Gzip bool
	// Authorization, RequestID, TraceParent and TraceState are the headers of those names; empty without one.
	Authorization, RequestID, TraceParent, TraceState string
}

// verdict is what is known of a request.
type verdict int

const (
	unfinished verdict = iota // more of it must be read
	isPlain
	isOther // it is for Options.Else
)

var (
	headEnd = []byte("\r\n\r\n")
	lineEnd = []byte("\r\n")
	method  = []byte("POST ")
	version = []byte(" HTTP/1.1")
)

// forms are the requests that are plain.
type forms struct {
	paths, kinds map[string]string // each by itself: found by bytes, they are no new strings
	lines        []string          // that requests begin with, by path
	maxBody      int
}

func newForms(o *Options) forms {
	f := forms{paths: make(map[string]string), kinds: make(map[string]string), maxBody: o.MaxBody}
	for _, p := range o.Paths {
		f.paths[p] = p
		f.lines = append(f.lines, string(method)+p+string(version)+string(lineEnd))
	}
	for _, k := range o.Kinds {
		f.kinds[k] = k
	}
	return f
}

// parse reads the head that b begins with, of n bytes. h is of use only if the request is plain.
func (f *forms) parse(b []byte, h *Head) (n int, v verdict) {
	at := bytes.Index(b[:min(len(b), maxHead)], headEnd)
	if at < 0 {
		if len(b) >= maxHead || !f.begins(b) {
			return 0, isOther
		}
		return 0, unfinished
	}
	first, lines, _ := bytes.Cut(b[:at+len(lineEnd)], lineEnd)
	if !f.request(first, h) {
		return 0, isOther
	}
	var seen fields
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, lineEnd)
		if !f.field(line, h, &seen) {
			return 0, isOther
		}
		lines = rest
	}
	if !seen.has(fieldHost) || !seen.has(fieldLength) || !seen.has(fieldKind) {
		return 0, isOther
	}
	return at + len(headEnd), isPlain
}

// begins says whether an unfinished head may become a plain one.
func (f *forms) begins(b []byte) bool {
	first, _, whole := bytes.Cut(b, lineEnd)
	if whole {
		return f.request(first, new(Head))
	}
	return slices.ContainsFunc(f.lines, func(line string) bool { return strings.HasPrefix(line, string(first)) })
}

// request reads the first line.
func (f *forms) request(line []byte, h *Head) (ok bool) {
	rest, ok := bytes.CutPrefix(line, method)
	if !ok {
		return false
	}
	if rest, ok = bytes.CutSuffix(rest, version); !ok {
		return false
	}
	h.Path, ok = f.paths[string(rest)]
	return ok
}

// fields are those that were seen.
type fields uint16

const (
	fieldHost fields = 1 << iota
	fieldLength
	fieldKind
	fieldTimeout
	fieldProtocol
	fieldAccept
	fieldAuthorization
	fieldRequestID
	fieldTraceParent
	fieldTraceState
)

func (s *fields) has(f fields) bool { return *s&f != 0 }

// add is false for a field that was seen before.
func (s *fields) add(f fields) bool {
	if s.has(f) {
		return false
	}
	*s |= f
	return true
}

// maxName is the length of the longest name that means anything here.
const maxName = len("connect-protocol-version")

// field reads a line of the head. It is false for one that is not for here.
func (f *forms) field(line []byte, h *Head, seen *fields) bool {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || !validName(name) {
		return false
	}
	value = bytes.Trim(value, " \t")
	if !validValue(value) {
		return false
	}
	if len(name) > maxName {
		return true
	}
	var low [maxName]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		low[i] = c
	}
	return f.known(low[:len(name)], value, h, seen)
}

// known takes the fields that mean something; it is false where that is more than is known here.
func (f *forms) known(name, value []byte, h *Head, seen *fields) (ok bool) {
	switch string(name) {
	case "host":
		return seen.add(fieldHost) && httpguts.ValidHostHeader(string(value))
	case "content-length":
		h.Length, ok = number(value)
		return ok && h.Length <= f.maxBody && seen.add(fieldLength)
	case "content-type":
		h.Kind, ok = f.kinds[string(value)]
		return ok && seen.add(fieldKind)
	case "connect-timeout-ms":
		var ms int
		ms, ok = number(value)
		h.Timeout = time.Duration(ms) * time.Millisecond
		return ok && ms > 0 && seen.add(fieldTimeout)
	case "connect-protocol-version":
		return string(value) == "1" && seen.add(fieldProtocol)
	case "accept-encoding":
		h.Gzip = lists(value, "gzip")
		return seen.add(fieldAccept)
	case "authorization":
		h.Authorization = string(value)
		return len(value) > 0 && seen.add(fieldAuthorization)
	case "x-request-id":
		h.RequestID = string(value)
		return len(value) > 0 && seen.add(fieldRequestID)
	case "traceparent":
		h.TraceParent = string(value)
		return len(value) > 0 && seen.add(fieldTraceParent)
	case "tracestate":
		h.TraceState = string(value)
		return len(value) > 0 && seen.add(fieldTraceState)
	case "connection":
		return bytes.EqualFold(value, []byte("keep-alive"))
	case "transfer-encoding", "content-encoding", "expect", "upgrade", "trailer", "te", "origin", "http2-settings":
		return false
	}
	return true
}

// number reads digits, at most nine of them.
func number(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil
}

// lists says whether a list with commas has this word.
func lists(value []byte, word string) bool {
	for part := range bytes.SplitSeq(value, []byte(",")) {
		if string(bytes.TrimSpace(part)) == word {
			return true
		}
	}
	return false
}

func validName(b []byte) bool {
	for _, c := range b {
		if !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return len(b) > 0
}

// validValue is narrower than HTTP: what is not visible is left to others.
func validValue(b []byte) bool {
	for _, c := range b {
		if (c < ' ' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}
