package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ErrOptions is a setting that cannot be used.
var ErrOptions = errors.New("bad options of the embedded NATS server")

// Options of a Server.
type Options struct {
	// Dir is where the log is kept.
	Dir string
	// Listen is HOST:PORT for other processes; port 0 takes a free one. Empty: none can connect.
	Listen string
	// Token, when set, is asked of every process that connects. An address that others can reach must have one.
	Token string
	// CertFile and KeyFile are PEM for TLS at Listen.
	CertFile, KeyFile string
	// MaxBytes bounds everything that is kept.
	MaxBytes int64
	// Logger may be nil.
	Logger *slog.Logger
}

const (
	// maxPayload is the largest record: the largest ZMQ frame that is taken, with its head.
	maxPayload = 16<<20 + 4096
	startTime  = 20 * time.Second
)

// Server is a NATS server in this process.
type Server struct{ *server.Server }

// Start starts a server. It errs with ErrOptions, or when the server does not come up.
func Start(o Options) (*Server, error) {
	opts, err := o.server()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Logger != nil {
		s.SetLoggerV2(logger{o.Logger}, false, false, false)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("embedded NATS server in %s does not come up", o.Dir)
	}
	return &Server{s}, nil
}

func (o Options) server() (*server.Options, error) {
	if o.Dir == "" {
		return nil, fmt.Errorf("%w: a folder is missing", ErrOptions)
	}
	opts := &server.Options{
		ServerName: "kvscout", JetStream: true, StoreDir: o.Dir, JetStreamMaxStore: o.MaxBytes, MaxPayload: maxPayload,
		MaxPending: 4 * maxPayload, NoSigs: true, NoLog: o.Logger == nil, Authorization: o.Token,
		DontListen: o.Listen == "",
	}
	if o.Listen == "" {
		return opts, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	opts.Host = host
	if opts.Port, err = strconv.Atoi(port); err != nil || opts.Port < 0 || opts.Port > 65535 {
		return nil, fmt.Errorf("%w: port %q", ErrOptions, port)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if ip := net.ParseIP(host); o.Token == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%w: %s can be reached by others, so it needs a token", ErrOptions, o.Listen)
	}
	if o.CertFile != "" {
		opts.TLS, opts.TLSTimeout = true, 5
		if opts.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: o.CertFile, KeyFile: o.KeyFile}); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	return opts, nil
}

// Close stops the server and waits for it.
func (s *Server) Close() {
	s.Shutdown()
	s.WaitForShutdown()
}

// logger passes the server's log on.
type logger struct{ *slog.Logger }

func (l logger) Noticef(format string, v ...any) { l.Debug("nats: " + fmt.Sprintf(format, v...)) }
func (l logger) Warnf(format string, v ...any)   { l.Warn("nats: " + fmt.Sprintf(format, v...)) }
func (l logger) Fatalf(format string, v ...any)  { l.Error("nats: " + fmt.Sprintf(format, v...)) }
func (l logger) Errorf(format string, v ...any)  { l.Error("nats: " + fmt.Sprintf(format, v...)) }
func (l logger) Debugf(string, ...any)           {}
func (l logger) Tracef(string, ...any)           {}
