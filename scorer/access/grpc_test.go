package access_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kvscout/kvscout/scorer/access"
)

// dial connects by grpc-go, whose connections have a transport of their own.
func dial(t testing.TB, r *rig) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// begun begins a call of any method without a message, and returns the status by which it is refused.
func begun(t testing.TB, conn *grpc.ClientConn, procedure, authorization string, trailer *metadata.MD) *status.Status {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if authorization != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", authorization)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, procedure)
	if err != nil {
		t.Fatal(err)
	}
	if err = stream.RecvMsg(&message{}); errors.Is(err, io.EOF) {
		err = nil
	}
	if trailer != nil {
		*trailer = stream.Trailer()
	}
	return status.Convert(err)
}

func statusReason(s *status.Status) string {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// The same as TestEveryMethod_NeedsItsRole by grpc-go: each method is refused before a message of it was sent.
func TestEveryMethod_NeedsItsRole_GRPC(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	conn := dial(t, r)
	for procedure := range methods(t) {
		for authorization, want := range map[string]struct {
			code   codes.Code
			reason string
		}{
			"":                              {codes.Unauthenticated, "NO_CREDENTIAL"},
			"Bearer wrong-token-0123456789": {codes.Unauthenticated, "BAD_TOKEN"},
			"Bearer " + scoreToken:          {codes.PermissionDenied, "ROLE_MISSING"},
		} {
			if want.code == codes.PermissionDenied && access.RoleOf(procedure) != access.RoleOperate {
				continue
			}
			if got := begun(t, conn, procedure, authorization, nil); got.Code() != want.code || statusReason(got) != want.reason {
				t.Errorf("%s, %.12q: %v, %v", procedure, authorization, got, got.Details())
			}
		}
	}
}

// A call over the bound is told when to come again.
func TestLimit_GRPC(t *testing.T) {
	r := start(t, access.Options{Limits: access.Limits{Calls: 1, Connections: 4}})
	begin(t, r, "", 10)
	under(t, r, 1)
	conn := dial(t, r)
	var trailer metadata.MD
	got := begun(t, conn, "/kvscout.v1.ScoreService/Score", "", &trailer)
	if got.Code() != codes.ResourceExhausted || statusReason(got) != "OVERLOADED" || len(got.Details()) != 2 || len(trailer["retry-after"]) != 1 {
		t.Errorf("%v, %v, %v", got, got.Details(), trailer)
	}
	eventually(t, "its connection is counted", func() bool { return r.guard.Stats().GetConnections() == 3 })
}
