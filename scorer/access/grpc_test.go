package access_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/test/pki"
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

// dialTLS connects by grpc-go with TLS, and with certificates of a caller.
func dialTLS(t testing.TB, r *rig, ca *pki.Authority, own ...tls.Certificate) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(r.addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), Certificates: own})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// gRPC with TLS meets grpc-go's own transport, which says nothing of compression in its headers, and which tells the guard of
// the caller's certificate, in calls that it answers itself and in those that it hands on.
func TestMutualTLS_TransportOfGRPCClients(t *testing.T) {
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	r := start(t, access.Options{Cert: cert, Key: key, ClientCA: ca.File, Callers: write(t, "", "score epp cn:epp\noperate admin cn:admin\n")})
	admin, epp := dialTLS(t, r, ca, ca.Pair(pki.Leaf{CommonName: "admin"})), dialTLS(t, r, ca, ca.Pair(pki.Leaf{CommonName: "epp"}))
	worker := &kvscoutv1.RegisterWorkerRequest{Worker: &kvscoutv1.WorkerSpec{WorkerId: "w0", Model: "m", Engine: "vllm"}}
	var header metadata.MD
	if err := admin.Invoke(t.Context(), kvscoutv1connect.IndexServiceRegisterWorkerProcedure, worker, new(kvscoutv1.RegisterWorkerResponse), grpc.Header(&header)); err != nil || len(header["grpc-accept-encoding"]) > 0 {
		t.Errorf("RegisterWorker: %v, header %v", err, header)
	}
	score := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}
	answer := new(kvscoutv1.ScoreResponse)
	if err := epp.Invoke(t.Context(), kvscoutv1connect.ScoreServiceScoreProcedure, score, answer, grpc.Header(&header)); err != nil || len(header["grpc-accept-encoding"]) > 0 || len(answer.GetWorkers()) != 1 {
		t.Errorf("Score: %v, header %v, answer %v", err, header, answer)
	}
	if got := begun(t, epp, kvscoutv1connect.IndexServiceClearProcedure, "", nil); statusReason(got) != "ROLE_MISSING" {
		t.Errorf("Clear by who may score: %v", got)
	}
	for _, method := range []string{kvscoutv1connect.ScoreServiceScoreProcedure, kvscoutv1connect.IndexServiceGetStatsProcedure} {
		if got := begun(t, dialTLS(t, r, ca), method, "", nil); statusReason(got) != "NO_CREDENTIAL" {
			t.Errorf("%s without a certificate: %v", method, got)
		}
		if got := begun(t, dialTLS(t, r, ca, ca.Pair(pki.Leaf{CommonName: "x"})), method, "", nil); statusReason(got) != "UNKNOWN_CERTIFICATE" {
			t.Errorf("%s with one of nobody: %v", method, got)
		}
	}
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
	everyMethod(t, dial(t, r))
}

// And with TLS.
func TestEveryMethod_NeedsItsRole_GRPCWithTLS(t *testing.T) {
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	everyMethod(t, dialTLS(t, start(t, access.Options{Callers: write(t, "", twoCallers), Cert: cert, Key: key}), ca))
}

func everyMethod(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
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
