package server

import (
	"net/http"
	"strconv"
	"strings"
)

// maxHeld bounds what a connection holds back.
const maxHeld = 64 << 10

// inOneWrite lets the answer of a unary call by Connect over HTTP/1.1 go out with its length and in one write. net/http would
// write each 4 KiB by itself, and in chunks, since it cannot know that the first write of the handler is the only one.
func inOneWrite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*conn)
		if !ok || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		out := &oneWrite{ResponseWriter: w, conn: c}
		next.ServeHTTP(out, r)
		out.end() // not after a panic, which ends the connection
	})
}

// oneWrite is an answer that is written at once, unless its status is written first, as that of errors is.
type oneWrite struct {
	http.ResponseWriter
	conn  *conn
	begun bool
	held  bool
}

// WriteHeader implements http.ResponseWriter.
func (w *oneWrite) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *oneWrite) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if unaryConnect(w.Header().Get("Content-Type")) {
			w.Header()["Content-Length"] = []string{strconv.Itoa(len(p))}
			w.held = true
			w.conn.hold()
		}
	}
	return w.ResponseWriter.Write(p)
}

// unaryConnect says whether an answer of this type is a message and nothing else.
func unaryConnect(contentType string) bool {
	return strings.HasPrefix(contentType, "application/proto") || strings.HasPrefix(contentType, "application/json")
}

// Unwrap is for http.ResponseController.
func (w *oneWrite) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, which connect asks for.
func (w *oneWrite) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// end lets go what was held. It fails where there is nobody left to be answered, which net/http finds out by reading on.
func (w *oneWrite) end() {
	if w.held {
		w.Flush()
		_ = w.conn.letGo()
	}
}
