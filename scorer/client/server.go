package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// address is where a server is.
type address struct {
	base   string // URL
	socket string // path of a unix socket; empty for TCP
}

func parseAddress(text string) (address, error) {
	if path, ok := strings.CutPrefix(text, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return address{}, fmt.Errorf("%w: %q has no absolute path", ErrOptions, text)
		}
		return address{base: "http://kvscout", socket: path}, nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The text is not told: it may hold credentials.
		return address{}, fmt.Errorf("%w: want http://HOST:PORT, https://HOST:PORT or unix:///PATH", ErrOptions)
	}
	return address{base: strings.TrimSuffix(text, "/")}, nil
}

// private is whether nobody can listen on the way there.
func (a address) private() bool {
	u, err := url.Parse(a.base)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return a.socket != "" || u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// server is one replica.
type server struct {
	kvscoutv1connect.ScoreServiceClient
	kvscoutv1connect.IndexServiceClient
	kvscoutv1connect.RenderServiceClient
	// duplex is for streams of both directions, which need HTTP/2.
	duplex     kvscoutv1connect.ScoreServiceClient
	transports []*http.Transport
}

// newServer prepares calls; unreached is told when no connection can be made.
func newServer(a address, opts Options, unreached func()) (*server, error) {
	var form []connect.ClientOption
	http2 := false
	switch opts.Protocol {
	case Connect:
	case ConnectJSON:
		form = append(form, connect.WithProtoJSON())
	case GRPC:
		form, http2 = append(form, connect.WithGRPC()), true
	case GRPCWeb:
		form = append(form, connect.WithGRPCWeb())
	default:
		return nil, fmt.Errorf("%w: protocol %q is not connect, connect-json, grpc or grpcweb", ErrOptions, opts.Protocol)
	}
	// Compression is for slow networks: asking for none saves time on both sides.
	form = append(form, connect.WithAcceptCompression("gzip", nil, nil), connect.WithReadMaxBytes(opts.ReadMaxBytes))
	s := new(server)
	calls := s.http(a, opts, http2, unreached)
	s.ScoreServiceClient = kvscoutv1connect.NewScoreServiceClient(calls, a.base, form...)
	s.IndexServiceClient = kvscoutv1connect.NewIndexServiceClient(calls, a.base, form...)
	s.RenderServiceClient = kvscoutv1connect.NewRenderServiceClient(calls, a.base, form...)
	s.duplex = s.ScoreServiceClient
	if !http2 {
		s.duplex = kvscoutv1connect.NewScoreServiceClient(s.http(a, opts, true, unreached), a.base, form...)
	}
	return s, nil
}

func (s *server) http(a address, opts Options, http2 bool, unreached func()) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	protocols.SetUnencryptedHTTP2(http2)
	dialer := &net.Dialer{Timeout: opts.DialTimeout, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: opts.TLS.Clone(),
		// The default of net/http, 2, would make most calls of a busy caller dial.
		MaxIdleConnsPerHost: opts.Concurrency,
		IdleConnTimeout:     time.Minute,
		TLSHandshakeTimeout: opts.DialTimeout,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if a.socket != "" {
				network, addr = "unix", a.socket
			}
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil && ctx.Err() == nil {
				unreached()
			}
			return conn, err
		},
	}
	s.transports = append(s.transports, transport)
	return &http.Client{
		Transport:     &authorized{next: transport, token: opts.Token},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (s *server) close() {
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}
