package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"
)

// credentialOptions say how a client knows its server, and the server its client.
type credentialOptions struct {
	ca, cert, key, tokenFile string
}

func (o *credentialOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE` that holds the bearer token to call with (default: none)")
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

// callOptions give every call the token.
func (o *credentialOptions) callOptions() ([]connect.ClientOption, error) {
	if o.tokenFile == "" {
		return nil, nil
	}
	data, err := readBounded(o.tokenFile, nil)
	if err != nil {
		return nil, misuse("token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return nil, misuse("token-file: %s has no token, or more than one", o.tokenFile)
	}
	return []connect.ClientOption{connect.WithInterceptors(bearer("Bearer " + token))}, nil
}

// bearer is the header Authorization of every call. It is set by call, not by connection, so that HTTP takes it out
// when a server points elsewhere.
type bearer string

// WrapUnary implements connect.Interceptor.
func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		req.Header().Set("Authorization", string(b))
		return next(ctx, req)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", string(b))
		return conn
	}
}

// WrapStreamingHandler implements connect.Interceptor; it changes nothing.
func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
