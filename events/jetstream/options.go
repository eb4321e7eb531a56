package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Defaults of Options.
const (
	DefaultStream     = "KVSCOUT"
	DefaultMaxBytes   = 4 << 30
	DefaultMaxAge     = 6 * time.Hour
	DefaultHeartbeat  = 3 * time.Second
	DefaultLease      = 10 * time.Second
	DefaultStaleAfter = 30 * time.Second
	DefaultMaxLag     = 2 * time.Second
	DefaultQueueBytes = 16 << 20
)

var (
	// ErrOptions is a setting that cannot be used.
	ErrOptions = errors.New("bad log options")
	// ErrStream is a stream of JetStream that cannot serve as the log.
	ErrStream = errors.New("stream cannot be the log")
	// ErrCursor is a Cursor that is not of this log.
	ErrCursor = errors.New("cursor is not of this log")
)

// Options of a Log. Zero means the default of that name.
type Options struct {
	// URL of the servers, nats:// or tls://, several joined by commas. Not used with Server.
	URL string
	// Server, when set, is a server in this process.
	Server nats.InProcessConnProvider
	// CredentialsFile holds a user's JWT and key, TokenFile a token, CAFile, CertFile and KeyFile PEM for TLS.
	CredentialsFile, TokenFile, CAFile, CertFile, KeyFile string

	// Stream is the name of the stream of JetStream, which is made if there is none. MaxBytes and MaxAge bound it then, and
	// Replicas says how many servers keep it (1).
	Stream   string
	MaxBytes int64
	MaxAge   time.Duration
	Replicas int

	// Heartbeat is how often an ingester tells the state of a source of which nothing else is to be told.
	Heartbeat time.Duration
	// Lease is how long an ingester is waited for before another one, that cannot be shown to continue it, takes over.
	Lease time.Duration
	// StaleAfter is how long a source may be told nothing of, and the log may be out of reach, before it is stale.
	StaleAfter time.Duration
	// MaxLag is how old a record may be when it is read, with more behind it, before the replica is behind.
	MaxLag time.Duration
	// QueueBytes bounds what waits to be stored, for each source.
	QueueBytes int
	// Logger may be nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Stream = cmp.Or(o.Stream, DefaultStream)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxAge = cmp.Or(o.MaxAge, DefaultMaxAge)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.StaleAfter = cmp.Or(o.StaleAfter, DefaultStaleAfter)
	o.MaxLag = cmp.Or(o.MaxLag, DefaultMaxLag)
	o.QueueBytes = cmp.Or(o.QueueBytes, DefaultQueueBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// streamName is what may name a stream and, in lower case, be part of a subject.
var streamName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Validate reports everything wrong with o, joined, each fault wrapping ErrOptions.
func (o Options) Validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
	}
	if (o.URL == "") == (o.Server == nil) {
		bad("give a URL or a server")
	}
	for url := range strings.SplitSeq(o.URL, ",") {
		if strings.Contains(url, "@") {
			bad("a URL must not hold credentials: use a file")
		}
	}
	if o.Stream != "" && !streamName.MatchString(o.Stream) {
		bad("stream %.100q is not 1 to 64 letters, digits, _ and -", o.Stream)
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"max bytes", o.MaxBytes}, {"max age", int64(o.MaxAge)}, {"replicas", int64(o.Replicas)},
		{"heartbeat", int64(o.Heartbeat)}, {"lease", int64(o.Lease)}, {"stale after", int64(o.StaleAfter)},
		{"max lag", int64(o.MaxLag)}, {"queue bytes", int64(o.QueueBytes)},
	} {
		if f.value < 0 {
			bad("%s is negative", f.name)
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		bad("a certificate needs its key, and a key its certificate")
	}
	if o.CredentialsFile != "" && o.TokenFile != "" {
		bad("give credentials or a token, not both")
	}
	return errors.Join(faults...)
}
