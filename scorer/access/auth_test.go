package access_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/kvscout/kvscout/scorer/access"
)

func asConnect(err error, to **connect.Error) bool { return errors.As(err, to) }

type message = emptypb.Empty // refused before it is read, so it need not be the method's own

// attempt calls a method, whatever its kind, and returns its error.
func attempt(t testing.TB, c *http.Client, url, authorization string, m protoreflect.MethodDescriptor, opts ...connect.ClientOption) error {
	t.Helper()
	path := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	to := connect.NewClient[message, message](c, url+path, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	set := func(h http.Header) {
		if authorization != "" {
			h.Set("Authorization", authorization)
		}
	}
	req := connect.NewRequest(&message{})
	set(req.Header())
	switch {
	case m.IsStreamingClient():
		stream := to.CallBidiStream(ctx)
		set(stream.RequestHeader())
		_ = stream.Send(&message{}) // what went wrong is told by Receive
		_, err := stream.Receive()
		return errors.Join(err, stream.CloseRequest())
	case m.IsStreamingServer():
		stream, err := to.CallServerStream(ctx, req)
		if err != nil {
			return err
		}
		defer stream.Close()
		stream.Receive()
		return stream.Err()
	default:
		_, err := to.CallUnary(ctx, req)
		return err
	}
}

var protocols = map[string][]connect.ClientOption{
	"connect proto": nil,
	"connect json":  {connect.WithProtoJSON()},
	"grpc":          {connect.WithGRPC()},
	"grpc-web":      {connect.WithGRPCWeb()},
}

// A caller without rights gets UNAUTHENTICATED or PERMISSION_DENIED with its reason on every method of every service, over
// every protocol, and one with rights does not.
func TestEveryMethod_NeedsItsRole(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	none, denied := connect.CodeUnauthenticated, connect.CodePermissionDenied
	c := client(t, nil, true)
	refusals := make(map[string]uint64)
	for procedure, m := range methods(t) {
		operate := access.RoleOf(procedure) == access.RoleOperate
		for protocol, opts := range protocols {
			for _, try := range []struct {
				name, authorization string
				code                connect.Code
				reason              string
			}{
				{"nothing", "", none, "NO_CREDENTIAL"},
				{"a wrong token", "Bearer wrong-token-0123456789", none, "BAD_TOKEN"},
				{"half a token", "Bearer " + scoreToken[:10], none, "BAD_TOKEN"},
				{"no bearer", "Basic " + scoreToken, none, "BAD_TOKEN"},
				{"the other role", "Bearer " + scoreToken, denied, "ROLE_MISSING"},
				{"its role", "bearer  " + operateToken, 0, ""},
			} {
				if try.reason == "ROLE_MISSING" && !operate {
					try.code, try.reason = 0, "" // it is enough
				}
				if try.reason == "" && m.IsStreamingServer() {
					continue // it would go on; TestRoles_MayCall has these
				}
				err := attempt(t, c, r.url, try.authorization, m, opts...)
				var e *connect.Error
				if asConnect(err, &e) && (e.Code() == none || e.Code() == denied) {
					refusals[try.reason]++
				}
				switch {
				case try.reason != "" && (connect.CodeOf(err) != try.code || reason(t, err) != try.reason):
					t.Errorf("%s, %s, with %s: %v, want %v %s", procedure, protocol, try.name, err, try.code, try.reason)
				case try.reason == "" && err != nil && (e.Code() == none || e.Code() == denied):
					t.Errorf("%s, %s, with %s: %v", procedure, protocol, try.name, err)
				}
				if err != nil && strings.Contains(err.Error(), "-token-") {
					t.Errorf("%s, %s: the error has the token: %v", procedure, protocol, err)
				}
			}
		}
	}
	// Each is counted.
	got := r.guard.Stats().GetRefused()
	for reason, n := range refusals {
		if got[reason] != n {
			t.Errorf("%d refusals %s were counted, want %d", got[reason], reason, n)
		}
	}
	if log := r.log.String(); strings.Contains(log, "-token-") || !strings.Contains(log, "BAD_TOKEN") {
		t.Errorf("the log has a token, or no refusal:\n%s", log)
	}
}

// Streams, and calls that do something.
func TestRoles_MayCall(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	gateway, admin := r.calls(client(t, nil, false), scoreToken), r.calls(client(t, nil, true), operateToken, connect.WithGRPC())
	if got := gateway.scores() + gateway.clears() + admin.scores() + admin.clears(); got != "ROLE_MISSING" {
		t.Errorf("got %q, want only the gateway's Clear refused", got)
	}
	for procedure, m := range methods(t) {
		if m.Name() != "StreamStats" && m.Name() != "Watch" {
			continue
		}
		if err := attempt(t, client(t, nil, true), r.url, "Bearer "+scoreToken, m, connect.WithGRPC()); err != nil {
			t.Errorf("%s: %v", procedure, err)
		}
	}
}

// Two headers are none: which of them counts must not be a guess.
func TestAuthorization_Twice(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/kvscout.v1.IndexService/GetStats", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["Authorization"] = []string{"Bearer " + scoreToken, "Bearer " + operateToken}
	resp, err := client(t, nil, false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if a := read(t, resp); a.status != http.StatusUnauthorized || a.reason() != "BAD_TOKEN" || a.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%+v", a)
	}
}

// What is of none of the protocols is refused too, and a path that nobody serves is for operators to find out.
func TestOtherRequests(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	for authorization, want := range map[string]int{"": http.StatusUnauthorized, "Bearer " + scoreToken: http.StatusForbidden, "Bearer " + operateToken: http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/debug/pprof/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := client(t, nil, false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, resp); a.status != want {
			t.Errorf("%.12q: %+v, want %d", authorization, a, want)
		}
	}
}

// Without a file everybody may do everything, and a token that is sent all the same is no fault.
func TestOpen(t *testing.T) {
	r := start(t, access.Options{})
	c := r.calls(client(t, nil, false), "whatever-it-may-be")
	if got := c.scores() + c.clears(); got != "" || r.guard.Asks() {
		t.Errorf("got %q", got)
	}
}

// Invariant 4: callers come and go with the file; what is wrong with it changes nothing, is told once and counted.
func TestCallers_AreReadAgain(t *testing.T) {
	path := write(t, "", twoCallers)
	r := start(t, access.Options{Callers: path})
	c := r.calls(client(t, nil, false), "rotated-token-0123456789")
	if got := c.scores(); got != "BAD_TOKEN" {
		t.Errorf("before: %q", got)
	}
	write(t, path, twoCallers+"score gateway token:rotated-token-0123456789\n")
	eventually(t, "the new token is taken", func() bool { return c.scores() == "" })

	write(t, path, "score gateway token:short\n")
	failed := func() bool { f := r.guard.Stats().GetFiles()[0]; return f.GetFailures() == 1 && f.GetError() != "" }
	eventually(t, "the fault is counted", failed)
	eventually(t, "the fault is told", func() bool { return strings.Contains(r.log.String(), "file is wrong") })
	if got := c.scores(); got != "" {
		t.Errorf("with a broken file: %q", got)
	}
	write(t, path, "operate admin token:"+operateToken+"\n")
	eventually(t, "the old tokens are refused", func() bool { return c.scores() == "BAD_TOKEN" })
	f := r.guard.Stats().GetFiles()[0]
	if f.GetName() != "callers" || f.GetLoads() != 3 || f.GetFailures() != 1 || f.GetError() != "" {
		t.Errorf("files: %v", f)
	}
	if log := r.log.String(); strings.Count(log, "file is wrong") != 1 {
		t.Errorf("the fault is not told once:\n%s", log)
	}
}

// At the start there is nothing to fall back on.
func TestNew_BadFiles(t *testing.T) {
	for name, opts := range map[string]access.Options{
		"no such file": {Callers: "/nonexistent/callers"}, "empty file": {Callers: write(t, "", "")},
		"key without certificate": {Key: "k"}, "certificate without key": {Cert: "c"}, "authorities without keys": {ClientCA: "c"},
		"no certificate": {Cert: "/nonexistent/c", Key: "/nonexistent/k"},
	} {
		if _, err := access.New(opts); !errors.Is(err, access.ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
