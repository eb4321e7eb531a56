package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// keys are the files and secrets of an API server.
type keys struct {
	certs, ca      string // directory, and the certificate in it that the server makes for itself
	serviceAccount string // private key that signs the tokens of ServiceAccounts
	tokens         string // file of bearer tokens
	token          string // the admin's
}

// writeKeys writes what is not there yet: a server that starts again keeps its certificate and key.
func writeKeys(dir, token string) (keys, error) {
	k := keys{certs: filepath.Join(dir, "certs"), serviceAccount: filepath.Join(dir, "sa.key"), tokens: filepath.Join(dir, "tokens.csv"), token: token}
	k.ca = filepath.Join(k.certs, "apiserver.crt")
	if k.token == "" {
		k.token = rand.Text()
	}
	if err := os.WriteFile(k.tokens, []byte(k.token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return k, err
	}
	if _, err := os.Stat(k.serviceAccount); err == nil {
		return k, nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return k, err
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return k, os.WriteFile(k.serviceAccount, pem.EncodeToMemory(&block), 0o600)
}

func writeKubeconfig(r ready) error {
	return os.WriteFile(r.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, r.URL, r.CAFile, r.Token), 0o600)
}

// startAPIServer starts kube-apiserver on ln. Its end comes through ended.
func startAPIServer(ctx context.Context, ln net.Listener, etcd string, k keys, extra []string) (ended <-chan error, err error) {
	addr := ln.Addr().(*net.TCPAddr)
	s := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range s.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(append([]string{
		"--etcd-servers=" + etcd,
		"--cert-dir=" + k.certs,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", addr.Port),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + k.serviceAccount,
		"--service-account-signing-key-file=" + k.serviceAccount,
		"--authorization-mode=RBAC",
		"--token-auth-file=" + k.tokens,
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
		"--enable-priority-and-fairness=false",
		"--v=0",
	}, extra...)); err != nil {
		return nil, err
	}
	s.SecureServing.Listener = ln
	s.SecureServing.BindPort = addr.Port
	s.SecureServing.ExternalAddress = addr.IP
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	logs.InitLogs()
	if err := logsapi.ValidateAndApply(s.Logs, nil); err != nil {
		return nil, err
	}
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, errors.Join(errs...)
	}
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, completed) }() // ends with ctx; run ends the process without waiting
	return done, nil
}

// waitReady returns when /readyz says ok.
func waitReady(ctx context.Context, base, token string, ended <-chan error) error {
	c := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		err := readyz(ctx, c, base, token)
		if err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("kube-apiserver ended before it was ready: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func readyz(ctx context.Context, c *http.Client, base, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	return fmt.Errorf("%s: %s", res.Status, body)
}
