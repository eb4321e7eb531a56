package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
)

// settings are the command line's.
type settings struct {
	dir   string
	port  int
	token string
	extra []string // of kube-apiserver
}

// ready is the line that is printed.
type ready struct {
	URL        string `json:"url"`
	CAFile     string `json:"caFile"`
	Token      string `json:"token"`
	Kubeconfig string `json:"kubeconfig"`
}

func main() {
	var s settings
	flag.StringVar(&s.dir, "dir", "", "directory of etcd's data, keys and kubeconfig; that of an earlier run goes on")
	flag.IntVar(&s.port, "port", 0, "the API server's port (0: any)")
	flag.StringVar(&s.token, "token", "", "the admin's bearer token (default: a random one)")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: kubetestapi -dir D [-port N] [-token T] [-- kube-apiserver flags]")
		flag.PrintDefaults()
	}
	flag.Parse()
	s.extra = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with standard input, at the latest with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "kubetestapi:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. A full shutdown would wait a minute for open watches, so the process just ends: etcd's data
// outlives that.
func run(ctx context.Context, s settings) error {
	dir, err := filepath.Abs(s.dir)
	if err != nil || s.dir == "" {
		return errors.Join(errors.New("-dir is missing"), err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	etcd, err := startEtcd(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	k, err := writeKeys(dir, s.token)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return err
	}
	ended, err := startAPIServer(ctx, ln, "http://"+etcd.Clients[0].Addr().String(), k, s.extra)
	if err != nil {
		return err
	}
	base := "https://" + ln.Addr().String()
	if err := waitReady(ctx, base, k.token, ended); err != nil {
		return err
	}
	line := ready{URL: base, CAFile: k.ca, Token: k.token, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := writeKubeconfig(line); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	select {
	case err = <-ended:
		return fmt.Errorf("kube-apiserver ended: %w", err)
	case err = <-etcd.Err():
		return fmt.Errorf("etcd ended: %w", err)
	case <-ctx.Done():
		return nil
	}
}

func startEtcd(ctx context.Context, dir string) (*embed.Etcd, error) {
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls, c.AdvertiseClientUrls = local, local
	c.ListenPeerUrls, c.AdvertisePeerUrls = local, local
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel = "error"
	c.LogOutputs = []string{"stderr"}
	c.UnsafeNoFsync = true
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, err
	case <-time.After(time.Minute):
		return nil, errors.New("not ready after a minute")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
