package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/scorer/client"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// errIncomplete is an input whose end is missing. What came before was used (case 121).
var errIncomplete = errors.New("incomplete")

// errWrong is an answer that claimed to be exact, or a bound, and was not.
var errWrong = errors.New("wrong")

// usageError is a command line, variable or configuration file that cannot be used.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// misuse makes an error that exits with 2.
func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// explain tells the user what went wrong, if anything, and returns the exit code.
func explain(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(w, "kvscout: %s\n", describe(err))
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(w, "Run the command with --help to see how it is called.")
		return exitUsage
	}
	return exitFailed
}

// describe is the text of an error, with the machine-readable reason of a server's.
func describe(err error) string {
	var rpc *connect.Error
	if !errors.As(err, &rpc) {
		return err.Error()
	}
	if !connect.IsWireError(err) { // nobody answered
		switch rpc.Code() {
		case connect.CodeUnavailable:
			return err.Error() + " (is the server running? --server says where)"
		case connect.CodeDeadlineExceeded:
			return err.Error() + " (--timeout gives it longer)"
		}
	}
	if reason := client.Reason(err); reason != "" {
		return fmt.Sprintf("%s (%s)", rpc.Error(), reason)
	}
	return err.Error()
}
