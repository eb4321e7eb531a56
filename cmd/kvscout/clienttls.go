package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/scorer/client"
)

// credentialOptions say how a client knows its server, and the server its client.
type credentialOptions struct {
	ca, cert, key, tokenFile string
	insecureToken            bool
	source                   func(context.Context) (string, error) // of the token, once it was asked for
}

// any says whether anything is asked for.
func (o *credentialOptions) any() bool {
	return o.ca != "" || o.cert != "" || o.key != "" || o.tokenFile != "" || o.insecureToken
}

func (o *credentialOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE` that holds the bearer token to call with (default: none)")
	f.BoolVar(&o.insecureToken, "insecure-token", false, "send the token in clear text to another machine, over http (default false: refuse)")
	f.StringVar(&o.ca, "ca", "", "`FILE` with the authorities of the server's certificate, in PEM (default: those of the system)")
	f.StringVar(&o.cert, "cert", "", "`FILE` with a certificate to call with, in PEM (default: none)")
	f.StringVar(&o.key, "key", "", "`FILE` with the key of --cert, in PEM (default: none)")
}

// tlsConfig is nil when nothing is asked for that differs from what HTTP does anyway.
func (o *credentialOptions) tlsConfig() (*tls.Config, error) {
	if o.ca == "" && o.cert == "" && o.key == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pem, err := readBounded(o.ca, nil)
		if err != nil {
			return nil, misuse("ca: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, misuse("ca: %s has no certificate in PEM form", o.ca)
		}
	}
	if o.cert != "" || o.key != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, misuse("cert and key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// token is where calls get their token from, nil without one. A file is read again when it changes; a pipe, such as
// --token-file <(pass show kvscout), cannot be.
func (o *credentialOptions) token() (func(context.Context) (string, error), error) {
	if o.tokenFile == "" || o.source != nil {
		return o.source, nil
	}
	if info, err := os.Stat(o.tokenFile); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		data, err := readBounded(o.tokenFile, nil)
		if err != nil {
			return nil, misuse("token-file: %w", err)
		}
		token := strings.TrimSpace(string(data))
		if token == "" || strings.ContainsAny(token, " \t\r\n") {
			return nil, misuse("token-file: %s has no token, or more than one", o.tokenFile)
		}
		o.source = func(context.Context) (string, error) { return token, nil }
		return o.source, nil
	}
	source := client.TokenFile(o.tokenFile)
	if _, err := source(context.Background()); err != nil {
		return nil, misuse("token-file: %w", err)
	}
	o.source = source
	return source, nil
}
