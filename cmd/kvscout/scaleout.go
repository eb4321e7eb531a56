package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/events/jetstream/embedded"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// embeddedNATS is the value of --nats that runs a server in this process.
const embeddedNATS = "embedded"

// logOptions are the settings of the log that servers share.
type logOptions struct {
	nats            string
	ingest, replica bool
	dir, listen     string // of the embedded server
	stream          string
	maxBytes        int64
	maxAge          time.Duration
	replicas        int

	credentialsFile, tokenFile, caFile, certFile, keyFile string
}

func (o *logOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.nats, "nats", "", "`URL` of the NATS servers that keep the log shared with other servers, or \"embedded\" to run one here (default: none)")
	f.BoolVar(&o.ingest, "ingest", false, "put what the workers of this server publish into the log (default false)")
	f.BoolVar(&o.replica, "replica", false, "take the workers of other servers from the log (default false)")
	f.StringVar(&o.dir, "nats-dir", "", "`DIR` in which the embedded NATS server keeps the log (default: none)")
	f.StringVar(&o.listen, "nats-listen", "", "`HOST:PORT` at which other servers reach the embedded NATS server (default: none)")
	f.StringVar(&o.stream, "nats-stream", jetstream.DefaultStream, "`NAME` of the log's stream")
	f.Int64Var(&o.maxBytes, "nats-max-bytes", jetstream.DefaultMaxBytes, "largest size of the log, in bytes, when it is made here")
	f.DurationVar(&o.maxAge, "nats-max-age", jetstream.DefaultMaxAge, "greatest age of what the log keeps, when it is made here")
	f.IntVar(&o.replicas, "nats-replicas", 1, "NATS servers that keep a copy of the log, when it is made here")
	f.StringVar(&o.credentialsFile, "nats-credentials-file", "", "`FILE` with a NATS user's credentials (default: none)")
	f.StringVar(&o.tokenFile, "nats-token-file", "", "`FILE` that holds the NATS token; the embedded server asks for it too (default: none)")
	f.StringVar(&o.caFile, "nats-ca-file", "", "PEM `FILE` of the authority that NATS servers are known by (default: the system's)")
	f.StringVar(&o.certFile, "nats-cert-file", "", "PEM `FILE` of the certificate for TLS to NATS; the embedded server shows it (default: none)")
	f.StringVar(&o.keyFile, "nats-key-file", "", "PEM `FILE` of the key of --nats-cert-file (default: none)")
}

// check reports everything wrong with the settings.
func (o *logOptions) check() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch {
	case o.nats == "" && (o.ingest || o.replica):
		bad("ingest and replica need nats")
	case o.nats != "" && !o.ingest && !o.replica:
		bad("nats needs ingest, replica, or both")
	}
	if o.nats == embeddedNATS && o.dir == "" {
		bad("nats embedded needs nats-dir")
	}
	if o.nats != embeddedNATS && (o.dir != "" || o.listen != "") {
		bad("nats-dir and nats-listen are of nats embedded")
	}
	if o.maxBytes <= 0 || o.maxAge <= 0 || o.replicas <= 0 {
		bad("nats-max-bytes, nats-max-age and nats-replicas must be positive")
	}
	return errors.Join(faults...)
}

// sharing is a server's part in the log; the zero value has none.
type sharing struct {
	server    *embedded.Server
	log       *jetstream.Log
	publisher *jetstream.Publisher
	follower  *jetstream.Follower
	replica   bool
	logger    *slog.Logger
}

// open connects to the log, which need not be reachable yet.
func (o *logOptions) open(staleAfter time.Duration, logger *slog.Logger) (*sharing, error) {
	s := &sharing{replica: o.replica, logger: logger}
	if o.nats == "" {
		return s, nil
	}
	options := jetstream.Options{
		URL: o.nats, Stream: o.stream, MaxBytes: o.maxBytes, MaxAge: o.maxAge, Replicas: o.replicas, StaleAfter: staleAfter,
		CredentialsFile: o.credentialsFile, TokenFile: o.tokenFile, CAFile: o.caFile, CertFile: o.certFile, KeyFile: o.keyFile,
		Logger: logger,
	}
	var err error
	if o.nats == embeddedNATS {
		if s.server, err = o.serve(logger); err != nil {
			return nil, usageError{err}
		}
		options.URL, options.Server = "", s.server
		options.CAFile, options.CertFile, options.KeyFile = "", "", ""
		logger.Info("NATS runs in this process", "dir", o.dir, "listen", cmp.Or(o.listen, "nowhere"))
	}
	if s.log, err = jetstream.Open(options); err != nil {
		s.close()
		return nil, usageError{err}
	}
	if o.ingest {
		s.publisher = s.log.NewPublisher()
	}
	return s, nil
}

// serve starts the embedded server.
func (o *logOptions) serve(logger *slog.Logger) (*embedded.Server, error) {
	options := embedded.Options{
		Dir: o.dir, Listen: o.listen, MaxBytes: o.maxBytes + o.maxBytes/4, CertFile: o.certFile, KeyFile: o.keyFile, Logger: logger,
	}
	if o.tokenFile != "" {
		token, err := readBounded(o.tokenFile, nil)
		if err != nil {
			return nil, err
		}
		options.Token = strings.TrimSpace(string(token))
	}
	return embedded.Start(options)
}

// ingestLog is where the fleet shares what it hears, nil for nowhere.
func (s *sharing) ingestLog() ingest.Log {
	if s.publisher == nil {
		return nil
	}
	return s.publisher
}

// attach prepares to read the log into the fleet, if this is a replica: before a snapshot is restored.
func (s *sharing) attach(fleet *ingest.Fleet) {
	if s.log != nil && s.replica {
		s.follower = s.log.Follow(fleet.Follow())
		fleet.Follow().Attach(s.follower)
	}
}

// follow reads the log, if this is a replica. The function returned stops it and waits.
func (s *sharing) follow(ctx context.Context, fleet *ingest.Fleet) (stop func()) {
	if s.follower == nil {
		return func() {}
	}
	return background(ctx, func(ctx context.Context) {
		if err := fleet.Follow().Run(ctx); err != nil && ctx.Err() == nil {
			s.logger.Error("the log is not read any more", "error", err)
		}
	})
}

// goodbyeTime is how long an ingester that stops may take to say so.
const goodbyeTime = 3 * time.Second

// close ends everything.
func (s *sharing) close() {
	if s.publisher != nil {
		ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
		defer cancel()
		s.publisher.Close(ctx)
	}
	if s.log != nil {
		s.log.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
}
