package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events/discover"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer/admin"
	"github.com/kvscout/kvscout/scorer/metrics"
	"github.com/kvscout/kvscout/scorer/server"
	"github.com/kvscout/kvscout/scorer/tracing"
)

const (
	defaultAdminListen = "127.0.0.1:9471"
	anyAdminListen     = "127.0.0.1:0"
	adminOff           = "off"
)

// adminOptions are the settings of the listener for operators.
type adminOptions struct {
	listen string
	// given: by flag, variable or file. Only then it is an error if the address is in use.
	given bool

	mutexFraction int
	blockRate     time.Duration

	trace traceOptions
}

func (o *adminOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "admin-listen", defaultAdminListen, "`ADDRESS` for operators, without TLS or rights: metrics, profiles, readiness; HOST:PORT, unix:///PATH or off. While the default is in use a free port of loopback is taken, which the log tells")
	f.IntVar(&o.mutexFraction, "mutex-profile-fraction", 0, "one of so many waits for a lock is in the mutex profile (default 0: none)")
	f.DurationVar(&o.blockRate, "block-profile-rate", 0, "one wait for each so long time blocked is in the block profile (default 0: none)")
	o.trace.register(f)
}

// resolve reads what the flags were set to. Endpoints that workers dial go before the default address.
func (o *adminOptions) resolve(flags *pflag.FlagSet, workers []discover.Worker) error {
	o.given = flags.Changed("admin-listen")
	faults := []error{o.trace.resolve(flags)}
	if err := checkListen(o.listen, workers); err != nil && o.given {
		faults = append(faults, err)
	} else if err != nil {
		o.listen = anyAdminListen
	}
	if o.mutexFraction < 0 {
		faults = append(faults, errors.New("mutex-profile-fraction is negative"))
	}
	if o.blockRate < 0 {
		faults = append(faults, errors.New("block-profile-rate is negative"))
	}
	return errors.Join(faults...)
}

// operators is the running listener for operators, or nothing if it is off.
type operators struct {
	registry *prometheus.Registry
	admin    *admin.Server
	calls    *metrics.Calls
	steps    *metrics.Steps
	traces   *tracing.Provider // nil if nothing is traced
	stop     func()            // ends it and waits for it
}

// start listens and answers until stop is called.
func (o *adminOptions) start(ctx context.Context, log *slog.Logger) (*operators, error) {
	traces, err := o.trace.open(ctx, log)
	if err != nil {
		return nil, err
	}
	out := &operators{registry: metrics.NewRegistry(version()), traces: traces}
	out.calls, out.steps = metrics.NewCalls(out.registry), metrics.NewSteps(out.registry)
	out.admin = admin.New(admin.Options{Metrics: metrics.Handler(out.registry, log), Version: version(), Logger: log})
	stop, err := o.serve(ctx, out.admin, log)
	if err != nil {
		return nil, errors.Join(err, traces.Close(ctx))
	}
	out.stop = func() {
		if err := traces.Close(ctx); err != nil {
			log.Warn("the last spans are lost", "error", err)
		}
		stop()
	}
	return out, nil
}

// serve has s answer, unless it is turned off, until stop is called.
func (o *adminOptions) serve(ctx context.Context, s *admin.Server, log *slog.Logger) (stop func(), err error) {
	if o.listen == "" || o.listen == adminOff {
		return func() {}, nil
	}
	l, err := o.open(ctx, log)
	if err != nil {
		return nil, err
	}
	if !admin.Loopback(l.Addr()) {
		log.Warn("operators are served beyond this machine, without TLS or rights", "address", l.Addr().String())
	}
	log.Info("operators are served", "address", l.Addr().String())
	unprofile := o.profile()
	end := background(context.WithoutCancel(ctx), func(ctx context.Context) {
		if err := s.Serve(ctx, l); err != nil {
			log.Error("operators are served no more", "error", err)
		}
	})
	return func() { end(); unprofile() }, nil
}

// open listens on the address that was given, or on the default one or any free one of loopback.
func (o *adminOptions) open(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	l, err := server.Listen(ctx, o.listen)
	if err != nil && !o.given && errors.Is(err, syscall.EADDRINUSE) {
		log.Warn("the address for operators is in use, a free one is taken", "address", o.listen)
		l, err = server.Listen(ctx, anyAdminListen)
	}
	if err != nil {
		return nil, fmt.Errorf("admin-listen: %w", err)
	}
	return l, nil
}

// profile turns on the profiles that cost something. The function it returns turns them off.
func (o *adminOptions) profile() func() {
	before := runtime.SetMutexProfileFraction(o.mutexFraction)
	runtime.SetBlockProfileRate(int(o.blockRate))
	return func() {
		runtime.SetMutexProfileFraction(before)
		runtime.SetBlockProfileRate(0)
	}
}

// observe lets operators see the service, from now on.
func (o *operators) observe(index *indexrpc.Service) {
	o.registry.MustRegister(metrics.NewCollector(index.Stats))
	if o.traces != nil {
		o.registry.MustRegister(metrics.Traces{Stats: func() (ended, exported, failed uint64) {
			s := o.traces.Stats()
			return s.Ended, s.Exported, s.Failed
		}})
	}
	o.admin.SetReady(func() admin.Status { return adminStatus(index.Stats(time.Now()).GetReadiness()) })
}

func adminStatus(r *kvscoutv1.Readiness) admin.Status {
	s := r.GetState()
	return admin.Status{
		Ready:   indexrpc.Ready(s),
		State:   word(s, "SERVICE_STATE_"),
		Waiting: r.GetWaiting(), Degraded: r.GetDegraded(), Flagged: r.GetFlagged(),
	}
}
