package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvscout/kvscout/render/pyval"
)

// What an *Error matches with errors.Is.
var (
	// ErrUnsupported: the template needs something that we do not do exactly. Mostly found by Parse, at load; a few
	// things (the address in the text of a generator) are seen only when they happen.
	ErrUnsupported = errors.New("template is not supported")
	// ErrSyntax: Jinja itself does not compile the template.
	ErrSyntax = errors.New("template does not compile")
	// ErrRaised: the template called raise_exception. Error.Message has its words.
	ErrRaised = errors.New("template raised an exception")
	// ErrTemplate: the template failed as it does in Python: undefined values, types, attributes.
	ErrTemplate = errors.New("template failed")
	// ErrLimit: the template ran into a limit of Options: steps, bytes, depth.
	ErrLimit = errors.New("template is over a limit")
)

// Error is a template that could not be parsed or executed.
type Error struct {
	// Line is the line in the template, from 1; 0 if it is not known.
	Line int
	// Detail is our account: it names what the template says, never what the request says.
	Detail string
	// Message is what raise_exception was given. It may quote the request: never log it. Error does not contain it.
	Message string

	kind error // one of the sentinels
}

func (e *Error) Error() string {
	text := "chat template: " + e.kind.Error()
	if e.Line > 0 {
		text = fmt.Sprintf("chat template: line %d: %s", e.Line, e.kind.Error())
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.kind }

func errAt(kind error, line int, format string, args ...any) error {
	return &Error{kind: kind, Line: line, Detail: fmt.Sprintf(format, args...)}
}

func failf(format string, args ...any) error { return errAt(ErrTemplate, 0, format, args...) }

func unsupportedf(format string, args ...any) error { return errAt(ErrUnsupported, 0, format, args...) }

func limitf(format string, args ...any) error { return errAt(ErrLimit, 0, format, args...) }

// located gives an error the line where it happened, if it has none, and makes foreign ones ErrTemplate.
func located(err error, line int) error {
	var e *Error
	if errors.As(err, &e) {
		if e.Line == 0 {
			e.Line = line
		}
		return err
	}
	if errors.Is(err, errBreak) || errors.Is(err, errContinue) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, pyval.ErrTooBig) {
		return &Error{kind: ErrLimit, Line: line, Detail: err.Error()}
	}
	return &Error{kind: ErrTemplate, Line: line, Detail: err.Error()}
}
