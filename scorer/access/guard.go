package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer/turn"
)

// DefaultPoll is how often files are looked at.
const DefaultPoll = 2 * time.Second

// tellEvery is the least time between two log lines about refusals for one reason. The counters miss none.
const tellEvery = 10 * time.Second

// ErrFile is a file that cannot be used at the start.
var ErrFile = errors.New("bad file")

// Options configures a Guard. The zero value lets everybody do everything.
type Options struct {
	// Callers is the file of callers: lines "role name credential", as docs/security.md has them. Empty: whoever connects,
	// with ClientCA by a certificate of it, may do everything.
	Callers string
	// Cert and Key are the server's, in PEM; both or none. ClientCA has the authorities of callers' certificates.
	Cert, Key, ClientCA string
	Limits              Limits
	// Crowded says whether calls that score wait too long already; the next is refused then. Nil is never.
	Crowded func() bool
	// Logger gets what happens to the files, and refusals, few of them. Nil: nothing is logged.
	Logger *slog.Logger
}

// Guard lets calls in or refuses them. Make it with New.
type Guard struct {
	opts    Options
	log     *slog.Logger
	files   []*secretFile
	callers atomic.Pointer[callers]    // nil without a file
	keys    atomic.Pointer[tls.Config] // nil without keys
	crowd   *crowd
	writer  *connect.ErrorWriter

	refused            [indexrpc.ReasonCount]atomic.Uint64
	told               [indexrpc.ReasonCount]rate.Sometimes
	handshakesFailed   atomic.Uint64
	connectionsRefused atomic.Uint64
}

// New reads the files. It errs with ErrFile, and for files that do not go together.
func New(opts Options) (*Guard, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Guard{opts: opts, log: opts.Logger, crowd: newCrowd(opts.Limits), writer: connect.NewErrorWriter()}
	for i := range g.told {
		g.told[i].Interval = tellEvery
	}
	switch {
	case (opts.Cert == "") != (opts.Key == ""):
		return nil, fmt.Errorf("%w: a certificate needs its key, and a key its certificate", ErrFile)
	case opts.ClientCA != "" && opts.Cert == "":
		return nil, fmt.Errorf("%w: certificates of callers need a certificate of the server", ErrFile)
	}
	if opts.Cert != "" {
		paths := []string{opts.Cert, opts.Key}
		if opts.ClientCA != "" {
			paths = append(paths, opts.ClientCA)
		}
		g.files = append(g.files, &secretFile{name: "tls", paths: paths, use: g.useTLS})
	}
	if opts.Callers != "" {
		g.files = append(g.files, &secretFile{name: "callers", paths: []string{opts.Callers}, use: g.useCallers})
	}
	for _, f := range g.files {
		if _, err := f.look(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFile, f.name, err)
		}
	}
	return g, nil
}

func (g *Guard) useCallers(contents [][]byte) error {
	c, err := parseCallers(contents[0])
	if err != nil {
		return err
	}
	g.callers.Store(c)
	return nil
}

// Run reads the files again when they change, until ctx ends. every is the time between two looks; 0 is DefaultPoll.
func (g *Guard) Run(ctx context.Context, every time.Duration) {
	if every <= 0 {
		every = DefaultPoll
	}
	if len(g.files) > 0 {
		follow(ctx, g.files, every, g.log)
	}
}

// Asks says whether callers must show who they are.
func (g *Guard) Asks() bool { return g.opts.Callers != "" || g.opts.ClientCA != "" }

// Call is what is known of a call before its body is read.
type Call struct {
	// Procedure is "/package.Service/Method".
	Procedure string
	// Authorization has the values of that header.
	Authorization []string
	// TLS is nil without TLS.
	TLS *tls.ConnectionState
	// Remote is "host:port", or anything else for callers without an address.
	Remote string
}

// Admission is a call that was let in. It must be ended once.
type Admission struct {
	crowd *crowd // nil outside of the limits
	who   *caller
	class class
}

// End says that the call is over.
func (a Admission) End() {
	if a.crowd != nil {
		a.crowd.leave(a.class, a.who)
	}
}

// Admit lets a call in or says why not.
func (g *Guard) Admit(c Call) (Admission, *indexrpc.Error) {
	who, key, err := g.identify(c)
	if err == nil && who.role < RoleOf(c.Procedure) {
		err = indexrpc.Failf(indexrpc.ReasonRoleMissing, "this method is for callers of role %v", RoleOf(c.Procedure))
	}
	if err != nil {
		g.count(c, who.name, err)
		return Admission{}, err
	}
	if unlimited(c.Procedure) {
		return Admission{}, nil
	}
	class := classOf(c.Procedure)
	var counted *caller
	if g.opts.Crowded != nil && g.opts.Crowded() && scoring[c.Procedure] {
		err = indexrpc.Overloaded("%w", turn.ErrCrowded)
	} else {
		counted, err = g.crowd.enter(class, key)
	}
	if err != nil {
		g.count(c, who.name, err)
		return Admission{}, err
	}
	return Admission{crowd: g.crowd, who: counted, class: class}, nil
}

// identify finds out who calls, and by what the caller is counted.
func (g *Guard) identify(c Call) (identity, callerKey, *indexrpc.Error) {
	if !g.Asks() {
		if !g.opts.Limits.perCaller() {
			return identity{role: RoleOperate}, callerKey{}, nil
		}
		return identity{role: RoleOperate}, addressKey(c.Remote), nil
	}
	who, err := g.known(c)
	return who, callerKey{name: who.name}, err
}

// known is the caller by token, or else by certificate.
func (g *Guard) known(c Call) (identity, *indexrpc.Error) {
	list := g.callers.Load()
	if list != nil && len(c.Authorization) > 0 {
		if token, ok := bearer(c.Authorization); ok {
			if who, ok := list.byToken(token); ok {
				return who, nil
			}
		}
		return identity{}, indexrpc.Failf(indexrpc.ReasonBadToken, "the header Authorization has no token that is known, want Bearer TOKEN")
	}
	if c.TLS != nil && len(c.TLS.VerifiedChains) > 0 {
		cert := c.TLS.VerifiedChains[0][0]
		if list == nil {
			return identity{name: nameOf(cert), role: RoleOperate}, nil
		}
		if who, ok := list.byCertificate(cert); ok {
			return who, nil
		}
		return identity{}, indexrpc.Failf(indexrpc.ReasonUnknownCertificate, "the certificate is of no known caller")
	}
	if list == nil {
		return identity{}, indexrpc.Failf(indexrpc.ReasonNoCredential, "no client certificate")
	}
	return identity{}, indexrpc.Failf(indexrpc.ReasonNoCredential, "no header Authorization: Bearer TOKEN")
}

// bearer is the token of the one header that there may be.
func bearer(values []string) (token string, ok bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if token = strings.TrimSpace(token); !ok || token == "" || !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	return token, true
}

// count counts a refusal and tells of it now and then.
func (g *Guard) count(c Call, caller string, err *indexrpc.Error) {
	n := g.refused[err.Reason].Add(1)
	g.told[err.Reason].Do(func() {
		method := c.Procedure
		if _, ok := roles[method]; !ok {
			method = "(unknown)"
		}
		g.log.Warn("calls are refused", "reason", err.Reason.String(), "times", n, "method", method, "caller", caller, "address", c.Remote)
	})
}
