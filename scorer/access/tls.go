package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// useTLS takes the contents of certificate, key and, with mutual TLS, of the authorities of callers.
func (g *Guard) useTLS(contents [][]byte) error {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return fmt.Errorf("certificate and key: %w", err)
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return fmt.Errorf("the certificate expired at %v", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	conf := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if len(contents) > 2 {
		conf.ClientCAs = x509.NewCertPool()
		if !conf.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return errors.New("client authorities: no certificate in PEM form")
		}
		// A caller without a certificate is refused by its first call, with a reason, which a handshake has not.
		conf.ClientAuth = tls.VerifyClientCertIfGiven
		conf.SessionTicketsDisabled = true // a resumed session would outlive its authority
	}
	g.keys.Store(conf)
	return nil
}

// TLS is the configuration of a listener, which for each connection has the keys that were read last; nil without keys.
func (g *Guard) TLS() *tls.Config {
	if g.keys.Load() == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.keys.Load(), nil },
	}
}
