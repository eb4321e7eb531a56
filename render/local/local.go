package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/profile"
	"github.com/kvscout/kvscout/render/pyval"
)

// ErrOptions is a configuration that cannot be used.
var ErrOptions = errors.New("bad options of an in-process renderer")

// Profiles lists what Options.Profile may be: the engine whose rules apply before the template.
func Profiles() []string { return []string{"vllm", "sglang", "trtllm"} }

// Defaults of Options.
const (
	DefaultMaxBody    = 32 << 20
	DefaultMaxTokens  = 2 << 20
	DefaultMaxPrompts = 128
	DefaultTimeout    = 5 * time.Second
)

// Options configure a Renderer. Zero means the default, except for Profile, which must be given.
type Options struct {
	// Profile is one of Profiles.
	Profile string
	// Served are the names that a body may call the model; none takes any.
	Served []string
	// MaxModelLen is the engine's longest prompt and answer together, in tokens; 0 is not known and not checked.
	MaxModelLen int
	// MaxBody bounds a body in bytes, MaxTokens the tokens and MaxPrompts the prompts of one body.
	MaxBody, MaxTokens, MaxPrompts int
	// Concurrency bounds the renders at once; 0 is one per processor. Others wait, as long as Timeout bounds.
	Concurrency int
	Timeout     time.Duration
	// ContentFormat is "string", "openai" or "auto" (default): how the template wants the content of messages. It is vLLM's
	// --chat-template-content-format.
	ContentFormat string
	// TemplateKwargs are the server's defaults for template arguments, as vLLM's --default-chat-template-kwargs; nil for
	// none.
	TemplateKwargs *pyval.Dict
	// NoToolParser: the engine runs without --enable-auto-tool-choice and --tool-call-parser, and refuses tools.
	NoToolParser bool
	// Now is the clock of templates that print the date; nil is the machine's, in its time zone.
	Now func() time.Time
}

// Renderer renders in process. It is safe for concurrent use.
type Renderer struct {
	opts  Options
	name  string // Result.Renderer
	slots chan struct{}

	// current is what renders: nil until files were loaded, then replaced as a whole.
	current atomic.Pointer[loaded]
	// fault is why the last load failed, nil if it did not.
	fault atomic.Pointer[render.Error]

	loads, calls atomic.Uint64
	errors       [render.ReasonCount]atomic.Uint64

	mu    sync.Mutex // guards dir and stamp; held while files are loaded
	dir   string
	stamp string // of the files that were tried last
}

// loaded is a model with its number.
type loaded struct {
	*model
	version     uint64
	fingerprint string
}

var (
	_ render.Renderer  = (*Renderer)(nil)
	_ render.Checker   = (*Renderer)(nil)
	_ render.Versioned = (*Renderer)(nil)
	_ render.Reporter  = (*Renderer)(nil)
)

// New makes a renderer for the model in a directory. Nothing is loaded yet: Load does, and until then it is not ready.
// It errs with ErrOptions.
func New(dir string, opts Options) (*Renderer, error) {
	switch {
	case dir == "":
		return nil, fmt.Errorf("%w: no directory", ErrOptions)
	case !slices.Contains(Profiles(), opts.Profile):
		return nil, fmt.Errorf("%w: profile %q is not one of %s", ErrOptions, opts.Profile, strings.Join(Profiles(), ", "))
	case !slices.Contains([]string{"", "auto", "string", "openai"}, opts.ContentFormat):
		return nil, fmt.Errorf("%w: content format %q is not auto, string or openai", ErrOptions, opts.ContentFormat)
	case min(opts.MaxModelLen, opts.MaxBody, opts.MaxTokens, opts.MaxPrompts, opts.Concurrency) < 0 || opts.Timeout < 0:
		return nil, fmt.Errorf("%w: a limit is negative", ErrOptions)
	}
	opts.MaxBody = orDefault(opts.MaxBody, DefaultMaxBody)
	opts.MaxTokens = orDefault(opts.MaxTokens, DefaultMaxTokens)
	opts.MaxPrompts = orDefault(opts.MaxPrompts, DefaultMaxPrompts)
	opts.Concurrency = orDefault(opts.Concurrency, runtime.GOMAXPROCS(0))
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Renderer{opts: opts, name: opts.Profile + "@local", dir: dir, slots: make(chan struct{}, opts.Concurrency)}, nil
}

func (o *Options) contentFormat() profile.ContentFormat {
	switch o.ContentFormat {
	case "string":
		return profile.FormatString
	case "openai":
		return profile.FormatParts
	default:
		return profile.FormatAuto
	}
}

// settings are all options that tokens depend on, as a text.
func (o *Options) settings() string {
	kwargs := ""
	if o.TemplateKwargs != nil {
		kwargs, _ = pyval.Repr(o.TemplateKwargs) // values of JSON have one
	}
	return fmt.Sprintf("%q %q %q %t %d %q", o.Profile, o.Served, o.ContentFormat, o.NoToolParser, o.MaxModelLen, kwargs)
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// Render renders a body. It errs with a *render.Error, or with context.Canceled if the caller cancelled.
func (r *Renderer) Render(ctx context.Context, req render.Request) (render.Result, error) {
	start := time.Now()
	r.calls.Add(1)
	result, err := r.render(ctx, req)
	var failed *render.Error
	if errors.As(err, &failed) && failed.Reason < render.ReasonCount {
		r.errors[failed.Reason].Add(1)
	}
	if err != nil {
		return render.Result{}, err
	}
	result.Renderer, result.Duration = r.name, time.Since(start)
	return result, nil
}

func (r *Renderer) render(ctx context.Context, req render.Request) (render.Result, error) {
	switch {
	case req.Path != render.PathChat && req.Path != render.PathCompletions:
		return render.Result{}, failf(render.ReasonPath, "%.100q is neither %s nor %s", req.Path, render.PathChat, render.PathCompletions)
	case len(req.Body) > r.opts.MaxBody:
		return render.Result{}, failf(render.ReasonBodyTooLarge, "%d bytes, limit %d", len(req.Body), r.opts.MaxBody)
	}
	m := r.current.Load()
	if m == nil {
		return render.Result{}, r.Ready()
	}
	callCtx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-callCtx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return render.Result{}, fmt.Errorf("render: %w", context.Canceled)
		}
		return render.Result{}, failf(render.ReasonOverloaded, "no slot of %d became free in time", r.opts.Concurrency)
	}
	prompts, err := m.render(callCtx, req, &r.opts)
	if err != nil {
		return render.Result{}, typed(ctx, callCtx, err)
	}
	return render.Result{Prompts: prompts, Fingerprint: m.fingerprint}, nil
}

// typed makes the error of a render what callers match.
func typed(ctx, callCtx context.Context, err error) error {
	var already *render.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("render: %w", context.Canceled)
	case errors.As(err, &already):
		return already
	case callCtx.Err() != nil:
		return failf(render.ReasonTimeout, "in process")
	default:
		return failf(render.ReasonNotExact, "%.200s", err.Error())
	}
}

func failf(reason render.Reason, format string, args ...any) *render.Error {
	return &render.Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Ready is nil if a model is loaded, else why none is.
func (r *Renderer) Ready() error {
	if r.current.Load() != nil {
		return nil
	}
	if fault := r.fault.Load(); fault != nil {
		return fault
	}
	return failf(render.ReasonUnusable, "nothing is loaded yet")
}

// Version counts the models loaded; results of one version are alike. It is 0 while results must not be kept: nothing is
// loaded, or the template prints the time.
func (r *Renderer) Version() uint64 {
	m := r.current.Load()
	if m == nil || m.timed {
		return 0
	}
	return m.version
}

// Report tells of the renderer and its model.
func (r *Renderer) Report() render.Report {
	out := render.Report{Renderer: r.name, Calls: r.calls.Load(), Loads: r.loads.Load()}
	for i := range out.Errors {
		out.Errors[i] = r.errors[i].Load()
	}
	if m := r.current.Load(); m != nil {
		out.Ready, out.Fingerprint, out.Memory = true, m.fingerprint, m.size
	}
	if fault := r.fault.Load(); fault != nil {
		out.Fault = fault
	}
	return out
}
