package simulate

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kvscout/kvscout/events"
)

// ErrConfig is a configuration that cannot be simulated.
var ErrConfig = errors.New("bad simulator configuration")

// Form names an engine release by what it publishes.
type Form string

const (
	// FormVLLM is vLLM 0.32: map events, uint64 hashes, topic frame in replay replies.
	FormVLLM Form = "vllm"
	// FormVLLMArray is vLLM 0.20: events as arrays of 10, replay replies without the topic.
	FormVLLMArray Form = "vllm-array"
	// FormSGLang is SGLang 0.5.23: map events, signed hashes, topic frame in replay replies.
	FormSGLang Form = "sglang"
	// FormSGLangArray is SGLang 0.5.19: events as arrays of 7, of 8 when salted, replay replies without the topic. It
	// serves no adapters: no recording shows how that release announces them.
	FormSGLangArray Form = "sglang-array"
)

// Forms lists every form, in the order of documentation.
func Forms() []Form { return []Form{FormVLLM, FormVLLMArray, FormSGLang, FormSGLangArray} }

// traits is what a form means to the code.
type traits struct {
	engine      events.Engine
	version     string
	maps        bool // events are maps, not arrays
	replayTopic bool // replay replies carry the topic frame
	adapters    bool // serves adapters
	tagged      bool // extra keys are hashed with their kind
}

var formTraits = map[Form]traits{
	FormVLLM:        {engine: events.EngineVLLM, version: "0.32.0", maps: true, replayTopic: true, adapters: true, tagged: true},
	FormVLLMArray:   {engine: events.EngineVLLM, version: "0.20.2", adapters: true},
	FormSGLang:      {engine: events.EngineSGLang, version: "0.5.23", maps: true, replayTopic: true, adapters: true},
	FormSGLangArray: {engine: events.EngineSGLang, version: "0.5.19"},
}

// ParseForm reads a form's name. It errs with ErrConfig.
func ParseForm(s string) (Form, error) {
	if _, ok := formTraits[Form(s)]; !ok {
		return "", fmt.Errorf("%w: form %q is none of %v", ErrConfig, s, Forms())
	}
	return Form(s), nil
}

// Limits and defaults of a Config.
const (
	DefaultBlockSize   = 16
	DefaultBlocks      = 2048
	DefaultBufferSteps = 10_000 // vLLM's and SGLang's own default
	maxBlockSize       = 4096
	maxBlocks          = 1 << 20
	maxBufferSteps     = 1 << 20
)

// Config describes one engine. Zero values mean the defaults named here; Worker has none.
type Config struct {
	// Worker is the id that the source gets; Rank its data-parallel rank, which every batch names.
	Worker string
	Rank   int
	// Form is what the engine publishes; FormVLLM when empty.
	Form Form
	// Model is the served model name.
	Model string
	// BlockSize is the number of tokens in a block (page). Blocks is how many the cache has room for, those of a running
	// request included.
	BlockSize, Blocks int
	// Events and Replay are the endpoints bound: tcp://host:port, where host may be * and port 0, or ipc://path.
	// Events is tcp://127.0.0.1:0 when empty; an empty Replay means no replay endpoint.
	Events, Replay string
	// Topic is the topic frame of every batch. May be empty.
	Topic string
	// BufferSteps is how many batches a replay can reach back.
	BufferSteps int
	// Seed is what the process derives its NONE_HASH from (vLLM: PYTHONHASHSEED is its decimal form in the first life).
	Seed uint64
	// Clock is what the engine takes for the time; time.Now when nil. It is written into the batches.
	Clock func() time.Time
	// Logger takes what peers did wrong; slog.Default when nil.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Form == "" {
		c.Form = FormVLLM
	}
	if c.BlockSize == 0 {
		c.BlockSize = DefaultBlockSize
	}
	if c.Blocks == 0 {
		c.Blocks = DefaultBlocks
	}
	if c.BufferSteps == 0 {
		c.BufferSteps = DefaultBufferSteps
	}
	if c.Events == "" {
		c.Events = "tcp://127.0.0.1:0"
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate reports everything wrong with c, joined, each fault wrapping ErrConfig.
func (c Config) validate() error {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Worker == "" {
		bad("worker is missing")
	}
	if c.Rank < 0 {
		bad("rank %d is negative", c.Rank)
	}
	if _, err := ParseForm(string(c.Form)); err != nil {
		faults = append(faults, err)
	}
	if c.BlockSize < 1 || c.BlockSize > maxBlockSize {
		bad("block size %d is not in 1..%d", c.BlockSize, maxBlockSize)
	}
	if c.Blocks < 1 || c.Blocks > maxBlocks {
		bad("%d blocks are not in 1..%d", c.Blocks, maxBlocks)
	}
	if c.BufferSteps < 1 || c.BufferSteps > maxBufferSteps {
		bad("%d buffer steps are not in 1..%d", c.BufferSteps, maxBufferSteps)
	}
	return errors.Join(faults...)
}
