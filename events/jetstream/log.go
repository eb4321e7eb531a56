package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// duplicates is how long the server refuses repeats of a Nats-Msg-Id.
const duplicates = 2 * time.Minute

// Log is a connection to the log.
type Log struct {
	o      Options
	prefix string
	conn   *nats.Conn
	js     jetstream.JetStream
	// lost is when the connection was lost, in Unix nanoseconds; 0 while there is one.
	lost atomic.Int64
	// reconnects counts connections after the first.
	reconnects atomic.Uint64
}

// Open prepares a connection to the log, which need not be reachable: it is tried again and again. It errs with ErrOptions,
// or when a file cannot be read. Close it.
func Open(o Options) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l := &Log{o: o.withDefaults()}
	l.prefix = strings.ToLower(l.o.Stream)
	l.lost.Store(time.Now().UnixNano())
	options, err := l.natsOptions()
	if err != nil {
		return nil, err
	}
	if l.conn, err = nats.Connect(l.o.URL, options...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if l.conn.IsConnected() {
		l.lost.Store(0)
	}
	if l.js, err = jetstream.New(l.conn); err != nil {
		l.conn.Close()
		return nil, err
	}
	return l, nil
}

func (l *Log) natsOptions() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name("kvscout"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(5 * time.Second), nats.PingInterval(5 * time.Second),
		nats.ConnectHandler(func(*nats.Conn) { l.lost.Store(0) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			l.lost.CompareAndSwap(0, time.Now().UnixNano())
			l.o.Logger.Warn("log disconnected", "error", err)
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			l.lost.Store(0)
			l.reconnects.Add(1)
			l.o.Logger.Info("log reconnected")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.o.Logger.Warn("log", "error", err) }),
	}
	if l.o.Server != nil {
		options = append(options, nats.InProcessServer(l.o.Server))
	}
	if l.o.CredentialsFile != "" {
		options = append(options, nats.UserCredentials(l.o.CredentialsFile))
	}
	if l.o.TokenFile != "" {
		token, err := readToken(l.o.TokenFile)
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Token(token))
	}
	if l.o.CAFile != "" {
		options = append(options, nats.RootCAs(l.o.CAFile))
	}
	if l.o.CertFile != "" {
		options = append(options, nats.ClientCert(l.o.CertFile, l.o.KeyFile))
	}
	return options, nil
}

// readToken reads a secret of at most 4 KiB from a file.
func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: token: %w", ErrOptions, err)
	}
	defer file.Close()
	const limit = 4 << 10
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: token: %w", ErrOptions, err)
	case len(data) > limit:
		return "", fmt.Errorf("%w: token file %s is over %d bytes", ErrOptions, path, limit)
	}
	return strings.TrimSpace(string(data)), nil
}

// Close ends the connection. Publishers and Followers must have ended.
func (l *Log) Close() { l.conn.Close() }

// stream finds the log's stream, or makes it. It errs with ErrStream when there is one that cannot be the log.
func (l *Log) stream(ctx context.Context) (jetstream.Stream, error) {
	subjects := []string{l.prefix + ".source.>", l.prefix + ".worker.>"}
	s, err := l.js.Stream(ctx, l.o.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = l.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: l.o.Stream, Subjects: subjects, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			MaxBytes: l.o.MaxBytes, MaxAge: l.o.MaxAge, Replicas: l.o.Replicas, Storage: jetstream.FileStorage,
			Duplicates: min(duplicates, l.o.MaxAge), Compression: jetstream.S2Compression,
			Description: "KV-cache events for kvscout's replicas",
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster
			s, err = l.js.Stream(ctx, l.o.Stream)
		}
	}
	if err != nil {
		return nil, err
	}
	switch c := s.CachedInfo().Config; {
	case c.Retention != jetstream.LimitsPolicy || c.Discard != jetstream.DiscardOld:
		return nil, fmt.Errorf("%w: %s does not keep records up to a limit", ErrStream, c.Name)
	case c.MaxBytes <= 0 && c.MaxAge <= 0:
		return nil, fmt.Errorf("%w: %s is bounded neither in size nor in age", ErrStream, c.Name)
	case c.MaxMsgsPerSubject > 0:
		return nil, fmt.Errorf("%w: %s keeps only %d records of a source", ErrStream, c.Name, c.MaxMsgsPerSubject)
	}
	return s, nil
}

// unreached is for how long the log has been out of reach, 0 while it is not.
func (l *Log) unreached(now time.Time) time.Duration {
	lost := l.lost.Load()
	if lost == 0 {
		return 0
	}
	return max(now.Sub(time.Unix(0, lost)), 1)
}

func (l *Log) logger() *slog.Logger { return l.o.Logger }
