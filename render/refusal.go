package render

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRefusal is how much of a refusal's body is read, in bytes.
	maxRefusal = 64 << 10
	// maxMessage bounds Error.Message, in bytes.
	maxMessage = 2048
	// maxRetryAfter bounds Error.RetryAfter.
	maxRetryAfter = time.Hour
)

// refusal is the body of an answer other than 200, as far as it could be read.
type refusal struct {
	message, kind, param string
}

// refused makes an answer other than 200 an *Error.
func refused(resp *http.Response, body io.Reader) error {
	said := decodeRefusal(io.LimitReader(body, maxRefusal))
	e := &Error{Status: resp.StatusCode, Message: said.message}
	e.Reason, e.Detail = judge(resp.StatusCode, said, resp.Header.Get("Retry-After") != "")
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	return e
}

// judge maps a status to a reason. Only a refusal that says so is the model's, the flag's or the caller's fault:
// proxies answer with the same numbers.
func judge(status int, said refusal, wait bool) (Reason, string) {
	switch {
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return ReasonBadRequest, ""
	case status == http.StatusUnauthorized:
		return ReasonUnauthorized, ""
	case status == http.StatusForbidden && said.kind == "PermissionDeniedError":
		return ReasonScaleOutDisabled, ""
	case status == http.StatusForbidden:
		return ReasonUnauthorized, "403 of another form than vLLM's"
	case status == http.StatusNotFound && said.namesModel():
		return ReasonUnknownModel, ""
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return ReasonNoRoute, ""
	case status == http.StatusRequestEntityTooLarge:
		return ReasonBodyTooLarge, "by the renderer's limit"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && wait:
		return ReasonOverloaded, ""
	case status/100 == 5:
		return ReasonDown, ""
	case status/100 == 3:
		return ReasonContract, "redirects are not followed"
	default:
		return ReasonContract, "status is not expected"
	}
}

// namesModel says whether a 404 is about the model. One about the route says {"detail": "Not Found"}.
func (r refusal) namesModel() bool {
	return r.kind == "NotFoundError" && (r.param == "model" || strings.Contains(r.message, "model"))
}

// decodeRefusal reads {"error": {"message", "type", "param"}}, the same without the outer object (older versions), or
// {"detail": "text"} (the web framework). What it cannot read stays empty: the status says enough.
func decodeRefusal(r io.Reader) refusal {
	var said refusal
	s := newScanner(r)
	var fields func(depth int) func(key []byte) error
	fields = func(depth int) func(key []byte) error {
		return func(key []byte) error {
			switch string(key) {
			case "message", "detail":
				return s.optionalText(&said.message, maxMessage)
			case "type":
				return s.optionalText(&said.kind, 64)
			case "param":
				return s.optionalText(&said.param, 64)
			case "error":
				if c, err := s.peek(); err == nil && c == '{' && depth == 0 {
					return s.object(fields(1))
				}
			}
			return s.skip()
		}
	}
	_ = s.object(fields(0))
	said.message = strings.ToValidUTF8(said.message, "")
	return said
}

// retryAfter reads the header of that name: seconds, or a date. It is 0 if it says neither.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

// withStatus adds the status to an *Error made without it.
func withStatus(err error, status int) error {
	if e, ok := err.(*Error); ok {
		e.Status = status
	}
	return err
}
