package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
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
	f.StringVar(&o.protocol, "protocol", "connect", "protocol to speak: connect, grpc or grpcweb")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "longest time for one call")
	o.credentialOptions.register(f)
	groupFlags(f, "Server", "server", "protocol", "timeout", "ca", "cert", "key", "token-file")
}

// client calls both services of one server. Close frees its connections.
type client struct {
	kvscoutv1connect.ScoreServiceClient
	kvscoutv1connect.IndexServiceClient
	timeout time.Duration
	http    *http.Transport
}

func (c *client) Close() { c.http.CloseIdleConnections() }

// bounded is ctx with the time that one call may take.
func (c *client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// call dials, makes one call in the time that it may take, and hangs up.
func call[Req, Res any](
	ctx context.Context, o *clientOptions, req *Req,
	method func(*client, context.Context, *connect.Request[Req]) (*connect.Response[Res], error),
) (*Res, error) {
	c, err := o.dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	res, err := method(c, ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

// dial prepares calls; it connects with the first. extra options are for calls that need another form.
func (o *clientOptions) dial(extra ...connect.ClientOption) (*client, error) {
	base, socket, err := parseServer(o.server)
	if err != nil {
		return nil, err
	}
	if o.timeout <= 0 {
		return nil, misuse("timeout %v is not positive", o.timeout)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, Protocols: new(http.Protocols)}
	if transport.TLSClientConfig, err = o.tlsConfig(); err != nil {
		return nil, err
	}
	credentials, err := o.callOptions()
	if err != nil {
		return nil, err
	}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	// Compression is for slow networks; asking for none saves time on both sides.
	opts := append([]connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil)}, append(credentials, extra...)...)
	switch o.protocol {
	case "connect":
		transport.Protocols.SetHTTP1(true)
	case "grpc":
		opts = append(opts, connect.WithGRPC())
		transport.Protocols.SetUnencryptedHTTP2(true)
		transport.Protocols.SetHTTP2(true)
	case "grpcweb":
		opts = append(opts, connect.WithGRPCWeb())
		transport.Protocols.SetHTTP1(true)
	default:
		return nil, misuse("protocol %q is not connect, grpc or grpcweb", o.protocol)
	}
	hc := &http.Client{Transport: transport}
	return &client{
		ScoreServiceClient: kvscoutv1connect.NewScoreServiceClient(hc, base, opts...),
		IndexServiceClient: kvscoutv1connect.NewIndexServiceClient(hc, base, opts...),
		timeout:            o.timeout,
		http:               transport,
	}, nil
}

// parseServer reads the URL of a server: its base URL and, for unix:///path, the socket.
func parseServer(text string) (base, socket string, err error) {
	if path, ok := strings.CutPrefix(text, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return "", "", misuse("server %q: want unix:///PATH", text)
		}
		return "http://kvscout", path, nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return "", "", misuse("server: want http://HOST:PORT, https://HOST:PORT or unix:///PATH")
	}
	return strings.TrimSuffix(text, "/"), "", nil
}
