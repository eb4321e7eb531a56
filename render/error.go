package render

import (
	"fmt"
	"time"
)

// Error is a failed render. errors.Is matches the sentinel of its Reason, and context.DeadlineExceeded on a timeout.
type Error struct {
	Reason Reason
	// Status is the renderer's HTTP status; 0 if it did not answer or was not asked.
	Status int
	// Message is what the renderer said, at most 2048 bytes of valid UTF-8; often empty. It may quote the prompt:
	// pass it to the caller who sent the prompt and never log it. Error does not contain it.
	Message string
	// RetryAfter is how long the renderer asks to be left alone (at most an hour); 0 if it did not say.
	RetryAfter time.Duration
	// Detail is our own account of what went wrong. It quotes neither prompt, nor answer, nor credentials.
	Detail string

	cause error // what else errors.Is matches, or nil
}

func (e *Error) Error() string {
	text := "render: unknown reason"
	if e.Reason < ReasonCount {
		text = "render: " + sentinels[e.Reason].Error()
	}
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap lets errors.Is find the sentinel and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Reason < ReasonCount {
		errs = append(errs, sentinels[e.Reason])
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

func failf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

func contractf(format string, args ...any) error { return failf(ReasonContract, format, args...) }

func tooLargef(format string, args ...any) error { return failf(ReasonTooLarge, format, args...) }
