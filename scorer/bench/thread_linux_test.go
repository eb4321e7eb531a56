package bench

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

type otherCaller struct{}

func (otherCaller) Call(context.Context, int) error { return nil }
func (otherCaller) Close() error                    { return nil }

// Lean callers of plain sockets are driven on one thread, all others are not.
func TestOnThread(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	defer secured.Close()
	lean := func(secure bool) *LeanCaller {
		return NewLean(&Post{Dial: func(ctx context.Context) (net.Conn, error) {
			if secure {
				return tls.Dial("tcp", secured.Listener.Addr().String(), secured.Client().Transport.(*http.Transport).TLSClientConfig)
			}
			return net.Dial("tcp", plain.Listener.Addr().String())
		}}, [][]byte{nil}, 0)
	}
	for name, c := range map[string]struct {
		callers []Caller
		load    Load
		want    bool
	}{
		"lean":      {[]Caller{lean(false), lean(false)}, Load{Rate: 1}, true},
		"closed":    {[]Caller{lean(false)}, Load{}, false},
		"TLS":       {[]Caller{lean(true)}, Load{Rate: 1}, false},
		"stock":     {[]Caller{lean(false), otherCaller{}}, Load{Rate: 1}, false},
		"impatient": {[]Caller{lean(false)}, Load{Rate: 1, Impatient: true}, false},
		"too many":  {make([]Caller, threadMost+1), Load{Rate: 1}, false},
	} {
		_, ok := onThread(t.Context(), c.callers, make([]*tally, len(c.callers)), c.load, nil)
		if ok != c.want {
			t.Errorf("%s: %v", name, ok)
		}
		for _, caller := range c.callers {
			if caller != nil {
				caller.Close()
			}
		}
	}
}
