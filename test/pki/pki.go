package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// File has its certificate.
	File string
}

// Leaf says what a certificate is of.
type Leaf struct {
	CommonName string
	DNS        []string
	URI        string
	// Expired: it was valid until an hour ago.
	Expired bool
}

// New makes an authority.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.File = filepath.Join(a.dir, "ca.pem")
	write(t, a.File, "CERTIFICATE", der)
	return a
}

// Pool has the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Sign makes a certificate for 127.0.0.1 and whatever leaf says, for servers and clients, and the files of it and its key.
func (a *Authority) Sign(leaf Leaf) (certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: serial(a.t), Subject: pkix.Name{CommonName: leaf.CommonName}, DNSNames: leaf.DNS,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if leaf.Expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	if leaf.URI != "" {
		u, err := url.Parse(leaf.URI)
		if err != nil {
			a.t.Fatal(err)
		}
		template.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	base := filepath.Join(a.dir, serial(a.t).String())
	certFile, keyFile = base+".pem", base+".key"
	write(a.t, certFile, "CERTIFICATE", der)
	write(a.t, keyFile, "PRIVATE KEY", secret)
	return certFile, keyFile
}

// Pair is a signed certificate to use.
func (a *Authority) Pair(leaf Leaf) tls.Certificate {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Sign(leaf))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
