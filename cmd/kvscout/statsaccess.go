package main

import (
	"fmt"
	"io"
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// printAccess tells who was kept out, and how the files of keys and callers are.
func printAccess(w io.Writer, a *kvscoutv1.AccessStats) {
	if a == nil {
		return
	}
	fmt.Fprintf(w, "access: %d calls under way on %d connections, refused: %s\n", a.GetCalls(), a.GetConnections(), counts(a.GetRefused()))
	if a.GetRefusedConnections() > 0 || a.GetFailedHandshakes() > 0 {
		fmt.Fprintf(w, "connections: %d refused, %d failed handshakes\n", a.GetRefusedConnections(), a.GetFailedHandshakes())
	}
	for _, f := range a.GetFiles() {
		fmt.Fprintf(w, "file of %s: read %d times, wrong %d times", f.GetName(), f.GetLoads(), f.GetFailures())
		if f.GetError() != "" {
			fmt.Fprintf(w, ", now: %s", f.GetError())
		}
		fmt.Fprintln(w)
	}
	if left := a.GetCertificateLeft(); left != nil {
		fmt.Fprintf(w, "certificate: %v left\n", left.AsDuration().Round(time.Minute))
	}
}
