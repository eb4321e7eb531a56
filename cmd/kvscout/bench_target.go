package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kvscout/kvscout/scorer/bench"
)

// reach works out how the server is called: to fill it, and to measure it.
func (o *benchScoreOptions) reach(ctx context.Context) error {
	source, err := o.credentials.token()
	if err != nil {
		return err
	}
	o.control = clientOptions{server: o.server, protocol: "connect", timeout: time.Minute, credentialOptions: o.credentials}
	if socket, ok := strings.CutPrefix(o.server, "unix://"); ok {
		o.target = bench.Target{Network: "unix", Address: socket}
	} else if o.target, err = o.overTCP(); err != nil {
		return err
	}
	if source != nil { // whether it may go there is found out by filling the server
		token, err := source(ctx)
		if err != nil {
			return err
		}
		o.target.Header = http.Header{"Authorization": {"Bearer " + token}}
	}
	return nil
}

// overTCP is a server that is named by a URL of HTTP.
func (o *benchScoreOptions) overTCP() (t bench.Target, err error) {
	u, err := url.Parse(strings.TrimSuffix(o.server, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Path != "" {
		return t, misuse("server: bench score wants http://HOST:PORT, https://HOST:PORT or unix:///PATH")
	}
	t = bench.Target{Network: "tcp", Address: u.Host}
	if u.Scheme == "http" {
		return t, nil
	}
	if t.TLS, err = o.credentials.tlsConfig(); err != nil {
		return t, err
	}
	if t.TLS == nil {
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLS.ServerName = u.Hostname()
	return t, nil
}
