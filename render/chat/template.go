package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/kvscout/kvscout/render/pyval"
)

// Defaults of Options, and the size of template that Parse takes.
const (
	MaxSource       = 1 << 20
	DefaultMaxSteps = 20_000_000
	DefaultMaxBytes = 512 << 20
	DefaultMaxDepth = 200
	DefaultMaxText  = 32 << 20
)

type options struct {
	steps, bytes int64
	text, depth  int
	now          func() time.Time
}

// Option changes how a Template executes.
type Option func(*options)

// WithClock sets the clock that strftime_now reads, in the time zone of the engine. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithMaxSteps bounds the work of one Execute: nodes visited, items seen, and one step per 64 bytes made.
func WithMaxSteps(n int64) Option { return func(o *options) { o.steps = n } }

// WithMaxBytes bounds what one Execute builds, texts that are thrown away included. It bounds memory from above.
func WithMaxBytes(n int64) Option { return func(o *options) { o.bytes = n } }

// WithMaxText bounds the output, and each text and list on the way, in bytes (16 for each item of a list).
func WithMaxText(n int) Option { return func(o *options) { o.text = n } }

// WithMaxDepth bounds how deep macros and recursive loops call each other.
func WithMaxDepth(n int) Option { return func(o *options) { o.depth = n } }

// Template is a chat template, ready to execute. It is immutable.
type Template struct {
	src     string
	root    *root
	free    map[string]bool
	options options
}

// Vars are the variables of one execution by name. Values must not be changed while Execute runs.
type Vars map[string]pyval.Value

// Parse compiles a template. It errs with ErrSyntax where Jinja would, with ErrUnsupported where we could not be
// exact, with ErrLimit for what is too large or too deep.
func Parse(src string, opts ...Option) (*Template, error) {
	t := &Template{src: src, options: options{
		steps: DefaultMaxSteps, bytes: DefaultMaxBytes, text: DefaultMaxText, depth: DefaultMaxDepth, now: time.Now,
	}}
	for _, o := range opts {
		o(&t.options)
	}
	if len(src) > MaxSource {
		return nil, limitf("template of %d bytes, more than %d", len(src), MaxSource)
	}
	var err error
	if t.root, err = parse(src); err != nil {
		return nil, err
	}
	if t.free, err = resolve(t.root); err != nil {
		return nil, err
	}
	return t, nil
}

// Source is the text that was parsed.
func (t *Template) Source() string { return t.src }

// Uses reports whether the template reads a name that it does not set itself (jinja2.meta.find_undeclared_variables).
func (t *Template) Uses(name string) bool { return t.free[name] && !isDefaultGlobal(name) }

// Execute renders the template. Its text may hold a lone surrogate (pyval.HasSurrogate), which engines refuse. It
// errs with an *Error, or with ctx's error.
func (t *Template) Execute(ctx context.Context, vars Vars) (string, error) {
	st := &state{ctx: ctx, vars: vars, options: t.options}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	e := st.enter(t.root.frame, nil, nil)
	if err := st.run(t.root.body, e); err != nil {
		return "", fmt.Errorf("execute: %w", err)
	}
	return string(st.out), nil
}
