package server

import (
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A client of HTTP/2 that has nothing to ask yet keeps its connection, and its server reads what it has sent but for the
// acknowledgement of settings that this server does not know.
func TestSniff_ConnectionAheadOfItsFirstRequest(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	sent := make(chan error, 1)
	go func() { // ends when there is closed, or has read the settings; waited for on sent
		sent <- func() error {
			if _, err := there.Write([]byte(http2.ClientPreface)); err != nil {
				return err
			}
			f := http2.NewFramer(there, there)
			if _, err := f.ReadFrame(); err != nil {
				return err
			}
			if err := f.WriteSettings(); err != nil {
				return err
			}
			return f.WriteSettingsAck()
		}()
	}()
	head, isGRPC, err := sniff(here, 500*time.Millisecond)
	if err != nil || isGRPC {
		t.Errorf("gRPC %v, %v", isGRPC, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if want := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"; string(head) != want {
		t.Errorf("read %q, want %q", head, want)
	}
}
