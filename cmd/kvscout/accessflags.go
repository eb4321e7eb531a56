package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/turn"
)

// accessOptions are the settings of a server that say who may call, and how much.
type accessOptions struct {
	cert, key, clientCA, callers string
	origins                      []string

	maxCalls, maxCallsPerCaller, maxConnections int
	maxRate                                     float64
	maxWait                                     time.Duration
}

func (o *accessOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.cert, "tls-cert", "", "`FILE` with the server's certificate and its chain, in PEM; read again when it changes (default: none, no TLS)")
	f.StringVar(&o.key, "tls-key", "", "`FILE` with the key of --tls-cert, in PEM (default: none)")
	f.StringVar(&o.clientCA, "tls-client-ca", "", "`FILE` with the authorities whose client certificates are taken, in PEM; without --callers each of them may do everything (default: none)")
	f.StringVar(&o.callers, "callers", "", "`FILE` of callers, read again when it changes: lines of a role, score or operate, a name, and sha256:, token:, san: or cn: with a credential (default: none, who connects may do everything)")
	f.StringArrayVar(&o.origins, "cors-origin", nil, "`ORIGIN` of web pages whose scripts may call, such as https://ops.example.com, * being any; may be repeated (default: none)")
	f.IntVar(&o.maxCalls, "max-calls", 0, "calls of routers under way at once, and so many others beside them, those over it are refused; 0 is 64 for each processor, at least 128")
	f.DurationVar(&o.maxWait, "max-wait", turn.DefaultMaxWait, "how long a call of Score may wait for a processor while many do, those over it are refused")
	f.IntVar(&o.maxCallsPerCaller, "max-calls-per-caller", 0, "the same of one caller, by its name or else its address (default 0: no bound)")
	f.Float64Var(&o.maxRate, "max-rate-per-caller", 0, "calls a second of one caller, and at once; messages of a stream wait for it (default 0: no bound)")
	f.IntVar(&o.maxConnections, "max-connections", 8192, "connections open at once, those over it are closed; 0 is no bound")
}

// check looks at the settings together. Files are looked at by guard.
func (o *accessOptions) check(listen string) error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch {
	case (o.cert == "") != (o.key == ""):
		bad("tls-cert and tls-key need each other")
	case o.clientCA != "" && o.cert == "":
		bad("tls-client-ca needs tls-cert and tls-key")
	case o.cert != "" && strings.HasPrefix(listen, "unix://"):
		bad("a Unix socket has no TLS: its file says who may connect")
	}
	if o.maxCalls < 0 || o.maxCallsPerCaller < 0 || o.maxConnections < 0 || !(o.maxRate >= 0 && o.maxRate <= 1e9) {
		bad("max-calls, max-calls-per-caller, max-rate-per-caller or max-connections is negative or no number")
	}
	for _, origin := range o.origins {
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || strings.TrimSuffix(origin, "/") != u.Scheme+"://"+u.Host) {
			bad("cors-origin %q is not of the form https://HOST", origin)
		}
	}
	if o.maxWait <= 0 {
		bad("max-wait is not positive")
	}
	return errors.Join(faults...)
}

// For each processor so many calls may be under way, and so many where there are few.
const (
	callsEach  = 64
	callsLeast = 128
)

// turns settles how many calls there may be, and is where they wait.
func (o *accessOptions) turns() *turn.Queue {
	if o.maxCalls == 0 {
		o.maxCalls = max(callsLeast, callsEach*runtime.GOMAXPROCS(0))
	}
	return turn.New(turn.Options{MaxWait: o.maxWait, MaxWaiting: o.maxCalls})
}

// guard reads the files.
func (o *accessOptions) guard(turns *turn.Queue, log *slog.Logger) (*access.Guard, error) {
	g, err := access.New(access.Options{
		Callers: o.callers, Cert: o.cert, Key: o.key, ClientCA: o.clientCA, Logger: log, Crowded: turns.Crowded,
		Limits: access.Limits{
			Calls: o.maxCalls, CallsPerCaller: o.maxCallsPerCaller, Rate: o.maxRate, Connections: o.maxConnections,
		},
	})
	if err != nil {
		return nil, usageError{err}
	}
	return g, nil
}

// warnOpen tells of what others can do to a server that listens beyond its own machine.
func warnOpen(log *slog.Logger, g *access.Guard, at net.Addr) {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return
	}
	if !g.Asks() {
		log.Warn("whoever reaches this address may do everything: see --callers and --tls-client-ca", "address", at.String())
	}
	if g.TLS() == nil {
		log.Warn("prompts, salts and tokens travel in clear text to this address: see --tls-cert", "address", at.String())
	}
}
