package access_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/test/pki"
)

// served is the name in the certificate that a server shows on a new connection.
func served(t testing.TB, r *rig, ca *pki.Authority) string {
	t.Helper()
	conn, err := tls.Dial("tcp", r.addr, &tls.Config{RootCAs: ca.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// HTTP/1.1 and HTTP/2 by ALPN, gRPC by grpc-go; nothing in clear text, and nothing older than TLS 1.2.
func TestTLS_Protocols(t *testing.T) {
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	r := start(t, access.Options{Cert: cert, Key: key})
	conf := &tls.Config{RootCAs: ca.Pool()}
	r.calls(client(t, conf, true), "").register()
	for _, two := range []bool{false, true} {
		for name, opts := range protocols {
			if name == "grpc" && !two {
				continue // it needs HTTP/2
			}
			if got := r.calls(client(t, conf, two), "", opts...).scores(); got != "" {
				t.Errorf("%s, HTTP/2 %v: %s", name, two, got)
			}
		}
	}
	if err := grpcScore(t, r, &tls.Config{RootCAs: ca.Pool()}, ""); err != nil {
		t.Errorf("grpc-go: %v", err)
	}
	before := r.guard.Stats().GetFailedHandshakes()
	old := &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if conn, err := tls.Dial("tcp", r.addr, old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v, %v", conn, err)
	}
	eventually(t, "the failed handshake is counted", func() bool { return r.guard.Stats().GetFailedHandshakes() > before })
	resp, err := client(t, nil, false).Get("http://" + r.addr)
	if err != nil || read(t, resp).status != http.StatusBadRequest {
		t.Errorf("clear text: %v, %v", resp, err)
	}
	if left := r.guard.Stats().GetCertificateLeft().AsDuration().Hours(); left < 11 || left > 12 {
		t.Errorf("the certificate of 12 hours has %v left", left)
	}
}

// grpcScore scores by grpc-go with TLS and perhaps a token.
func grpcScore(t testing.TB, r *rig, conf *tls.Config, token string) error {
	t.Helper()
	conn, err := grpc.NewClient(r.addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	req := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}
	return conn.Invoke(ctx, kvscoutv1connect.ScoreServiceScoreProcedure, req, new(kvscoutv1.ScoreResponse))
}

// Invariant 4 for certificates: new connections get what the files have, and if they are wrong what they had. Old connections go on.
func TestTLS_CertificatesAreReadAgain(t *testing.T) {
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "first"})
	r := start(t, access.Options{Cert: cert, Key: key})
	held := r.calls(client(t, &tls.Config{RootCAs: ca.Pool()}, true), "")
	held.register()
	if got := served(t, r, ca) + held.scores(); got != "first" {
		t.Fatalf("got %q", got)
	}
	failures := func(n uint64) func() bool {
		return func() bool { return r.guard.Stats().GetFiles()[0].GetFailures() >= n }
	}
	secondCert, secondKey := ca.Sign(pki.Leaf{CommonName: "second"})
	copyFile(t, secondCert, cert) // without its key
	eventually(t, "half a pair is a fault", failures(1))
	if got := served(t, r, ca); got != "first" {
		t.Errorf("with half a pair: %s", got)
	}
	copyFile(t, secondKey, key)
	eventually(t, "the second is served", func() bool { return served(t, r, ca) == "second" })
	if got := r.guard.Stats().GetFiles()[0]; got.GetError() != "" || got.GetLoads() != 2 || got.GetName() != "tls" {
		t.Errorf("files: %v", got)
	}
	before := r.guard.Stats().GetFiles()[0].GetFailures()
	write(t, cert, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	eventually(t, "no certificate is a fault", failures(before+1))
	oldCert, oldKey := ca.Sign(pki.Leaf{CommonName: "old", Expired: true})
	copyFile(t, oldKey, key)
	copyFile(t, oldCert, cert)
	eventually(t, "an expired one is a fault", func() bool { return strings.Contains(r.guard.Stats().GetFiles()[0].GetError(), "expired") })
	if got := served(t, r, ca) + held.scores(); got != "second" {
		t.Errorf("at the end: %q", got)
	}
	if strings.Contains(r.log.String(), "PRIVATE KEY") {
		t.Error("the log has a key")
	}
}

// Callers are known by certificate, or by token where both are taken. Who has none is told so by the first call.
func TestMutualTLS(t *testing.T) {
	ca, strangers := pki.New(t, "ca"), pki.New(t, "strangers")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	r := start(t, access.Options{Cert: cert, Key: key, ClientCA: ca.File, Callers: write(t, "",
		"score epp san:spiffe://c/ns/gw/sa/epp\nscore web san:web.example\noperate admin cn:admin\nscore gateway token:"+scoreToken+"\noperate boss token:"+operateToken+"\n")})
	with := func(leaf *pki.Leaf, by *pki.Authority) *tls.Config {
		conf := &tls.Config{RootCAs: ca.Pool()}
		if leaf != nil {
			pair := by.Pair(*leaf)
			conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return conf
	}
	r.calls(client(t, with(nil, nil), true), operateToken).register()
	epp, admin, other := &pki.Leaf{URI: "spiffe://c/ns/gw/sa/epp"}, &pki.Leaf{CommonName: "admin"}, &pki.Leaf{CommonName: "web.example", DNS: []string{"other.example"}}
	for name, try := range map[string]struct {
		conf           *tls.Config
		token          string
		scores, clears string
	}{
		"by URI":                           {with(epp, ca), "", "", "ROLE_MISSING"},
		"by DNS name":                      {with(&pki.Leaf{DNS: []string{"x.example", "web.example"}}, ca), "", "", "ROLE_MISSING"},
		"by common name":                   {with(admin, ca), "", "", ""},
		"a common name is no alternative":  {with(other, ca), "", "UNKNOWN_CERTIFICATE", "UNKNOWN_CERTIFICATE"},
		"an alternative is no common name": {with(&pki.Leaf{DNS: []string{"admin"}}, ca), "", "UNKNOWN_CERTIFICATE", "UNKNOWN_CERTIFICATE"},
		"none":                             {with(nil, nil), "", "NO_CREDENTIAL", "NO_CREDENTIAL"},
		"a token instead":                  {with(nil, nil), scoreToken, "", "ROLE_MISSING"},
		"a token beats a certificate":      {with(epp, ca), operateToken, "", ""},
		"a wrong one too":                  {with(admin, ca), "wrong-token-0123456789", "BAD_TOKEN", "BAD_TOKEN"},
	} {
		c := r.calls(client(t, try.conf, true), try.token)
		if scores, clears := c.scores(), c.clears(); scores != try.scores || clears != try.clears {
			t.Errorf("%s: Score %q, Clear %q, want %q, %q", name, scores, clears, try.scores, try.clears)
		}
		if err := grpcScore(t, r, try.conf.Clone(), try.token); (err == nil) != (try.scores == "") || err != nil && status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s, by grpc-go: %v", name, err)
		}
	}
	for name, conf := range map[string]*tls.Config{"of strangers": with(epp, strangers), "expired": with(&pki.Leaf{URI: epp.URI, Expired: true}, ca)} {
		before := r.guard.Stats().GetFailedHandshakes()
		if got := r.calls(client(t, conf, true), "").scores(); got == "" {
			t.Errorf("%s: let in", name)
		}
		eventually(t, name+" is counted", func() bool { return r.guard.Stats().GetFailedHandshakes() > before })
	}
}

// Authorities without a file of callers: each certificate of them may do everything, and without one nobody anything.
func TestMutualTLS_Alone(t *testing.T) {
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	authority := write(t, "", "")
	copyFile(t, ca.File, authority)
	r := start(t, access.Options{Cert: cert, Key: key, ClientCA: authority, Limits: access.Limits{Rate: 1e6}})
	conf := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Pair(pki.Leaf{CommonName: "any"})}}
	c := r.calls(client(t, conf, true), "")
	c.register()
	if got := c.scores() + c.clears(); got != "" {
		t.Errorf("with a certificate: %q", got)
	}
	if got := r.calls(client(t, &tls.Config{RootCAs: ca.Pool()}, true), scoreToken).scores(); got != "NO_CREDENTIAL" {
		t.Errorf("without: %q", got)
	}
	// The authorities are read again, too.
	next := pki.New(t, "next")
	copyFile(t, next.File, authority)
	renewed := func(n string) string {
		conf := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{next.Pair(pki.Leaf{CommonName: n})}}
		return r.calls(client(t, conf, true), "").scores()
	}
	n := 0
	eventually(t, "the next authority is taken", func() bool { n++; return renewed(fmt.Sprint("next", n)) == "" })
	if got := r.calls(client(t, conf, true), "").scores(); got == "" {
		t.Error("the authority that went is still taken")
	}
}
