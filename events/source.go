package events

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// ErrSource is a source description that cannot be used.
var ErrSource = errors.New("bad source")

// Engine names the program behind a source.
type Engine string

const (
	EngineVLLM   Engine = "vllm"
	EngineSGLang Engine = "sglang"
	EngineTRTLLM Engine = "trtllm"
)

// Hidden is something an engine does to its cache without publishing it, so that answers about it are upper bounds.
type Hidden string

const (
	// HiddenWindow: evictions of sliding windows emit no event (SGLang SWA).
	HiddenWindow Hidden = "sliding_window"
	// HiddenState: recurrent states emit no event (SGLang with mamba).
	HiddenState Hidden = "recurrent_state"
	// HiddenNamespace: a namespace is neither in the event nor in the hash (SGLang extra_key).
	HiddenNamespace Hidden = "namespace"
)

// Source describes one event stream: a publisher of one rank of one worker, and what its configuration says that the
// stream does not. The zero value of a field means "not stated".
type Source struct {
	// Worker is the id the EPP uses; Rank its data-parallel rank, 0 without data parallelism.
	Worker string
	Rank   int
	Engine Engine
	// Version of the engine, for people.
	Version string
	// Model is the served model name.
	Model string
	// BlockSize in tokens, informative: the stream's own sizes count.
	BlockSize int
	// Events is the ZMQ endpoint. A host of "*", "0.0.0.0" or "[::]" is bound (the engine dials us), any other is dialled.
	// For TensorRT-LLM it may be the URL of /kv_cache_events, which is polled and tells of every rank.
	Events string
	// Replay is the endpoint of the replay ROUTER, empty without one.
	Replay string
	// Topic is the prefix subscribed to; empty takes all.
	Topic string
	// SpeculativeEAGLE: the engine drops the last matched block (vLLM, rule 7).
	SpeculativeEAGLE bool
	// PairKeys: the engine keys its tree by bigrams (SGLang with EAGLE).
	PairKeys bool
	// ReuseReports: parentless stores of blocks that are all held repeat them and are no copies (vLLM
	// kv_cache_report_mode "full").
	ReuseReports bool
	// HashFormat "dynamo" (SGLang 0.5.22 and later) makes the published hash cover the namespace.
	HashFormat string
	// Unpublished lists what the engine does without telling.
	Unpublished []Hidden
}

// HashFormatDynamo is the hash format in which SGLang's published hashes cover every part of the namespace.
const HashFormatDynamo = "dynamo"

// ID names the source as "worker/rank".
func (s Source) ID() string { return s.Worker + "/" + strconv.Itoa(s.Rank) }

// Hides says whether the source is configured to hide h.
func (s Source) Hides(h Hidden) bool { return slices.Contains(s.Unpublished, h) }

// ParseID splits "worker/rank"; an id without a rank has rank 0. It errs with ErrSource.
func ParseID(id string) (worker string, rank int, err error) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 && id != "" {
		return id, 0, nil
	}
	if i <= 0 {
		return "", 0, fmt.Errorf("%w: id %q names no worker", ErrSource, id)
	}
	rank, err = strconv.Atoi(id[i+1:])
	if err != nil || rank < 0 {
		return "", 0, fmt.Errorf("%w: id %q is not worker/rank", ErrSource, id)
	}
	return id[:i], rank, nil
}

// ParseSource reads the command line's form of a source, "key=value,key=value", as
//
//	id=w0,engine=vllm,model=M,block-size=16,events=tcp://HOST:5557,replay=tcp://HOST:5567,rank=0
//
// with the further keys topic, version, speculative=eagle, eagle=true (SGLang's pair keys), reuse-reports=true,
// hash-format=dynamo and unpublished=a+b. It errs with ErrSource.
func ParseSource(text string) (Source, error) {
	var s Source
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return Source{}, fmt.Errorf("%w: %q is not key=value", ErrSource, part)
		}
		if seen[key] {
			return Source{}, fmt.Errorf("%w: %s is given twice", ErrSource, key)
		}
		seen[key] = true
		if err := s.set(key, value); err != nil {
			return Source{}, err
		}
	}
	return s, s.Validate()
}

func (s *Source) set(key, value string) (err error) {
	switch key {
	case "id", "worker":
		s.Worker = value
	case "rank":
		s.Rank, err = strconv.Atoi(value)
	case "engine":
		s.Engine = Engine(value)
	case "version":
		s.Version = value
	case "model":
		s.Model = value
	case "block-size":
		s.BlockSize, err = strconv.Atoi(value)
	case "events":
		s.Events = value
	case "replay":
		s.Replay = value
	case "topic":
		s.Topic = value
	case "speculative":
		if value != "eagle" {
			return fmt.Errorf("%w: speculative=%q, only eagle is known", ErrSource, value)
		}
		s.SpeculativeEAGLE = true
	case "eagle":
		s.PairKeys, err = strconv.ParseBool(value)
	case "reuse-reports":
		s.ReuseReports, err = strconv.ParseBool(value)
	case "hash-format":
		s.HashFormat = value
	case "unpublished":
		for h := range strings.SplitSeq(value, "+") {
			s.Unpublished = append(s.Unpublished, Hidden(h))
		}
	default:
		return fmt.Errorf("%w: unknown key %q", ErrSource, key)
	}
	if err != nil {
		return fmt.Errorf("%w: %s=%q: %v", ErrSource, key, value, err)
	}
	return nil
}

// Validate reports everything wrong with s, joined, each fault wrapping ErrSource. Endpoints may be empty: a recording
// or a push needs none.
func (s Source) Validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrSource}, args...)...))
	}
	if s.Worker == "" {
		bad("id is missing")
	}
	if s.Rank < 0 {
		bad("rank %d is negative", s.Rank)
	}
	if s.BlockSize < 0 {
		bad("block size %d is negative", s.BlockSize)
	}
	switch s.Engine {
	case EngineVLLM, EngineSGLang, EngineTRTLLM:
	default:
		bad("engine %q is not vllm, sglang or trtllm", s.Engine)
	}
	switch s.HashFormat {
	case "", "default":
	case HashFormatDynamo:
		if s.Engine != EngineSGLang {
			bad("hash format dynamo is SGLang's")
		}
	default:
		bad("hash format %q is not default or dynamo", s.HashFormat)
	}
	for _, h := range s.Unpublished {
		switch h {
		case HiddenWindow, HiddenState, HiddenNamespace:
		default:
			bad("unpublished %q is not sliding_window, recurrent_state or namespace", h)
		}
	}
	if s.Polled() {
		faults = append(faults, s.checkPolled())
	}
	for _, e := range []string{s.Events, s.Replay} {
		if e == "" || s.Polled() {
			continue
		}
		if _, err := ParseEndpoint(e); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// Endpoint is a ZMQ address in the parts that Go's net package wants.
type Endpoint struct {
	// Network is "tcp" or "unix"; Address what net.Dial and net.Listen take.
	Network, Address string
	// Bind says that the address names every interface, so we listen and the engine dials.
	Bind bool
}

// ParseEndpoint reads tcp://host:port and ipc://path. It errs with ErrSource.
func ParseEndpoint(text string) (Endpoint, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if scheme != "ipc" && strings.ContainsAny(text, "@?#") { // which may be followed or led by a credential: it is not repeated
		return Endpoint{}, fmt.Errorf("%w: endpoint has more than a host and a port", ErrSource)
	}
	if !ok || rest == "" {
		return Endpoint{}, fmt.Errorf("%w: endpoint %q is not tcp://host:port or ipc://path", ErrSource, text)
	}
	switch scheme {
	case "ipc":
		return Endpoint{Network: "unix", Address: rest}, nil
	case "tcp":
		return parseTCP(text, rest)
	default:
		return Endpoint{}, fmt.Errorf("%w: endpoint %q: only tcp and ipc are known", ErrSource, text)
	}
}

func parseTCP(text, rest string) (Endpoint, error) {
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%w: endpoint %q: %v", ErrSource, text, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%w: endpoint %q: port %q", ErrSource, text, port)
	}
	if host == "" {
		return Endpoint{}, fmt.Errorf("%w: endpoint %q has no host (use * to bind)", ErrSource, text)
	}
	if host == "*" || host == "0.0.0.0" || host == "::" {
		if host == "*" {
			host = ""
		}
		return Endpoint{Network: "tcp", Address: net.JoinHostPort(host, port), Bind: true}, nil
	}
	if n == 0 {
		return Endpoint{}, fmt.Errorf("%w: endpoint %q: port 0 cannot be dialled", ErrSource, text)
	}
	return Endpoint{Network: "tcp", Address: net.JoinHostPort(host, port)}, nil
}

// MaxRanks is the largest number of data-parallel ranks of one worker.
const MaxRanks = 4096

// Ranks spreads s over n data-parallel ranks as engines do: rank r publishes on port + r. One rank returns s alone. It
// errs with ErrSource when there are more than MaxRanks, or endpoints would collide or cannot be offset.
func (s Source) Ranks(n int) ([]Source, error) {
	if n <= 1 {
		return []Source{s}, nil
	}
	if n > MaxRanks {
		return nil, fmt.Errorf("%w: %d ranks, limit %d", ErrSource, n, MaxRanks)
	}
	if s.Polled() {
		return nil, fmt.Errorf("%w: %s tells of all ranks of a worker: one source is enough", ErrSource, s.Events)
	}
	used := make(map[string]int)
	out := make([]Source, n)
	for r := range n {
		out[r] = s
		out[r].Rank = s.Rank + r
		for _, e := range []*string{&out[r].Events, &out[r].Replay} {
			if *e == "" {
				continue
			}
			moved, err := offsetPort(*e, r)
			if err != nil {
				return nil, err
			}
			if first, dup := used[moved]; dup {
				return nil, fmt.Errorf("%w: endpoint %s is used by ranks %d and %d", ErrSource, moved, first, r)
			}
			used[moved] = r
			*e = moved
		}
	}
	return out, nil
}

// offsetPort keeps the host as it is written: "*" is every interface, of IPv4 and IPv6 alike.
func offsetPort(endpoint string, by int) (string, error) {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	host, text, err := net.SplitHostPort(rest)
	if err != nil || scheme != "tcp" {
		return "", fmt.Errorf("%w: endpoint %q cannot be offset by rank", ErrSource, endpoint)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || int(port)+by > 65535 {
		return "", fmt.Errorf("%w: endpoint %q cannot be offset by rank %d", ErrSource, endpoint, by)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(int(port)+by)), nil
}
