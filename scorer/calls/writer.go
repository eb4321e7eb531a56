package calls

import (
	"net/http"
	"strconv"

	"connectrpc.com/connect"
)

// writer notes how an answer begins.
type writer struct {
	http.ResponseWriter
	status int // 0 before the first byte
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, which connect asks for.
func (w *writer) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		if w.status == 0 {
			w.status = http.StatusOK
		}
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// code is that of an answer which no handler gave: gRPC says it in its trailer, the others by their status.
func (w *writer) code() string {
	h := w.Header()
	for _, name := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if v := h[name]; len(v) > 0 {
			if n, err := strconv.ParseUint(v[0], 10, 32); err == nil && n > 0 {
				return connect.Code(n).String()
			} else if err == nil {
				return codeOK
			}
		}
	}
	if code, ok := statuses[w.status]; ok {
		return code.String()
	}
	if w.status >= http.StatusBadRequest {
		return connect.CodeUnknown.String()
	}
	return codeOK
}

// statuses are those that Connect's errors have, and those of requests that are no call.
var statuses = map[int]connect.Code{
	http.StatusBadRequest:              connect.CodeInvalidArgument,
	http.StatusUnauthorized:            connect.CodeUnauthenticated,
	http.StatusForbidden:               connect.CodePermissionDenied,
	http.StatusNotFound:                connect.CodeUnimplemented,
	http.StatusMethodNotAllowed:        connect.CodeUnimplemented,
	http.StatusUnsupportedMediaType:    connect.CodeUnimplemented,
	http.StatusHTTPVersionNotSupported: connect.CodeUnimplemented,
	http.StatusNotImplemented:          connect.CodeUnimplemented,
	http.StatusTooManyRequests:         connect.CodeResourceExhausted,
	http.StatusInternalServerError:     connect.CodeInternal,
	http.StatusServiceUnavailable:      connect.CodeUnavailable,
	http.StatusGatewayTimeout:          connect.CodeDeadlineExceeded,
	499:                                connect.CodeCanceled,
}
