package main

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// defaultServer is where `kvscout serve` listens by default.
const defaultServer = "http://127.0.0.1:9470"

// clientOptions say which server to call and how.
type clientOptions struct {
	server, protocol string
	timeout          time.Duration
	credentialOptions
}

func (o *clientOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.server, "server", defaultServer, "`URL` of the server: http://HOST:PORT, https://HOST:PORT or unix:///PATH")
	f.StringVar(&o.protocol, "protocol", string(client.Connect), "protocol to speak: connect, connect-json, grpc or grpcweb")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "longest time for one call, with what is tried again of it")
	o.credentialOptions.register(f)
	groupFlags(f, "Server", "server", "protocol", "timeout", "ca", "cert", "key", "token-file", "insecure-token")
}

// dial prepares calls; it connects with the first. A call is tried again where that is safe, until --timeout.
func (o *clientOptions) dial() (*client.Client, error) {
	if o.timeout <= 0 {
		return nil, misuse("timeout %v is not positive", o.timeout)
	}
	opts := client.Options{
		Protocol: client.Protocol(o.protocol), Timeout: o.timeout, DialTimeout: o.timeout, PlaintextToken: o.insecureToken,
	}
	var err error
	if opts.TLS, err = o.tlsConfig(); err != nil {
		return nil, err
	}
	if opts.Token, err = o.token(); err != nil {
		return nil, err
	}
	c, err := client.New([]string{o.server}, opts)
	switch {
	case errors.Is(err, client.ErrPlaintextToken):
		return nil, misuse("%w: use https or a Unix socket, or give --insecure-token if that network encrypts by itself", err)
	case err != nil:
		return nil, usageError{err}
	}
	return c, nil
}

// call dials, makes one call in the time that it may take, and hangs up.
func call[Req, Res any](
	ctx context.Context, o *clientOptions, req *Req, method func(*client.Client, context.Context, *Req) (*Res, error),
) (*Res, error) {
	c, err := o.dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return method(c, ctx, req)
}

// dialIndex is dial for what is also done without a server, by the handlers themselves.
func (o *clientOptions) dialIndex() (*indexClient, error) {
	c, err := o.dial()
	if err != nil {
		return nil, err
	}
	return &indexClient{c}, nil
}

// indexClient calls a server by the methods that its handlers have.
type indexClient struct{ *client.Client }

func (c *indexClient) RegisterWorker(ctx context.Context, req *connect.Request[kvscoutv1.RegisterWorkerRequest]) (*connect.Response[kvscoutv1.RegisterWorkerResponse], error) {
	return asHandler(ctx, req, c.Client.RegisterWorker)
}

func (c *indexClient) DeregisterWorker(ctx context.Context, req *connect.Request[kvscoutv1.DeregisterWorkerRequest]) (*connect.Response[kvscoutv1.DeregisterWorkerResponse], error) {
	return asHandler(ctx, req, c.Client.DeregisterWorker)
}

func (c *indexClient) ListWorkers(ctx context.Context, req *connect.Request[kvscoutv1.ListWorkersRequest]) (*connect.Response[kvscoutv1.ListWorkersResponse], error) {
	return asHandler(ctx, req, c.Client.ListWorkers)
}

func (c *indexClient) GetStats(ctx context.Context, req *connect.Request[kvscoutv1.GetStatsRequest]) (*connect.Response[kvscoutv1.GetStatsResponse], error) {
	return asHandler(ctx, req, c.Client.GetStats)
}

func (c *indexClient) Publish(ctx context.Context, req *connect.Request[kvscoutv1.PublishRequest]) (*connect.Response[kvscoutv1.PublishResponse], error) {
	return asHandler(ctx, req, c.Client.Publish)
}

func (c *indexClient) Score(ctx context.Context, req *connect.Request[kvscoutv1.ScoreRequest]) (*connect.Response[kvscoutv1.ScoreResponse], error) {
	return asHandler(ctx, req, c.Client.Score)
}

func asHandler[Req, Res any](
	ctx context.Context, req *connect.Request[Req], method func(context.Context, *Req) (*Res, error),
) (*connect.Response[Res], error) {
	res, err := method(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}
