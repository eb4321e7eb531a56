package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/local"
)

// modelOptions say what renders, in process or elsewhere.
type modelOptions struct {
	localOptions
	tokenizer     string
	url, protocol string
}

func (o *modelOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.profile, "profile", "vllm", "whose rules apply in process: vllm, sglang or trtllm")
	f.StringVar(&o.tokenizer, "tokenizer", "", "`DIR` with tokenizer.json and the chat template: render in process (default: none)")
	f.StringArrayVar(&o.served, "served-model", nil, "`NAME` that bodies may call the model, others are refused; may be repeated (default: any)")
	f.IntVar(&o.maxModelLen, "max-model-len", 0, "longest prompt and answer in process, in tokens; what is longer is refused as the engine does (default 0: not checked)")
	f.StringVar(&o.contentFormat, "content-format", "auto", "how the template wants the content of messages: auto, string or openai")
	f.StringVar(&o.kwargsFile, "template-kwargs", "", "`FILE` with the engine's default arguments of the template, a JSON object (default: none)")
	f.BoolVar(&o.noToolParser, "no-tool-parser", false, "the engine has no tool parser and refuses tools (default false: it has one)")
}

// registerRemote adds the flags of a remote renderer.
func (o *modelOptions) registerRemote(f *pflag.FlagSet) {
	f.StringVar(&o.url, "renderer", "", "`URL` of a remote renderer, instead of --tokenizer (default: none)")
	f.StringVar(&o.protocol, "renderer-protocol", render.ProtocolVLLM, "what the renderer speaks: vllm-render, sglang-renderer or trtllm-render")
}

// open makes the renderer. Close it.
func (o *modelOptions) open() (r render.Renderer, closing func(), err error) {
	switch {
	case (o.tokenizer == "") == (o.url == ""):
		return nil, nil, misuse("give exactly one of --tokenizer and --renderer")
	case o.url != "":
		client, err := render.NewClient(render.Options{URL: o.url, Protocol: o.protocol})
		if err != nil {
			return nil, nil, usageError{err}
		}
		return client, client.Close, nil
	}
	opts, err := o.options()
	if err != nil {
		return nil, nil, usageError{err}
	}
	made, err := local.New(o.tokenizer, opts)
	if err != nil {
		return nil, nil, usageError{err}
	}
	if err := made.Load(); err != nil {
		return nil, nil, err
	}
	return made, func() {}, nil
}

// renderCommand are the settings of `kvscout render`.
type renderCommand struct {
	modelOptions
	body, path, check string
	json              bool
}

func newRender() *cobra.Command {
	var o renderCommand
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Turn a request body into the tokens that the engine will run",
		Long: `Turn a request body into the exact tokens that the engine will run, in process or by a remote renderer, or say why
that cannot be done.

Each line of the output is one prompt of the body, a JSON list of token ids as "kvscout score --tokens" takes it.

With --check a file of recorded bodies is rendered instead, one JSON object a line (name, path, body or body_base64,
status, token_ids), and compared with what the engine made of them. Columns: EQUAL has the same ids, ERRORS are refused by
both, REFUSED cannot be rendered exactly by us and says why, WRONG is all else; if any is wrong the command exits with 1.`,
		Example: `  kvscout render --profile vllm --tokenizer models/qwen3 --body chat.json
  kvscout render --tokenizer models/qwen3 --path /v1/completions --body - < body.json
  kvscout render --tokenizer models/qwen3 --served-model qwen3 --max-model-len 40960 --check goldens.jsonl --json
  kvscout render --renderer http://127.0.0.1:8000 --body chat.json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRender(cmd, &o) },
	}
	f := cmd.Flags()
	o.register(f)
	o.registerRemote(f)
	f.StringVar(&o.body, "body", "", "`FILE` with the HTTP body that the engine would get; - is standard input (default: none)")
	f.StringVar(&o.path, "path", render.PathChat, "HTTP path that --body would be sent to")
	f.StringVar(&o.check, "check", "", "`FILE` of recorded bodies to compare with (default: none)")
	f.BoolVar(&o.json, "json", false, "print the result as JSON and nothing else")
	return cmd
}

func runRender(cmd *cobra.Command, o *renderCommand) error {
	if (o.body == "") == (o.check == "") {
		return misuse("give exactly one of --body and --check")
	}
	r, closing, err := o.open()
	if err != nil {
		return err
	}
	defer closing()
	if o.check != "" {
		return checkGoldens(cmd, r, o.check, o.json)
	}
	body, err := readBounded(o.body, cmd.InOrStdin())
	if err != nil {
		return err
	}
	result, err := r.Render(cmd.Context(), render.Request{Path: o.path, Body: body})
	if err != nil {
		return saying(err)
	}
	return printRendered(cmd.OutOrStdout(), result, o.json)
}

// saying adds what the renderer said of the body: whoever calls the command has sent it.
func saying(err error) error {
	var failed *render.Error
	if errors.As(err, &failed) && failed.Message != "" {
		return fmt.Errorf("%w: %s", err, failed.Message)
	}
	return err
}

// renderedJSON is the JSON form of a rendered body.
type renderedJSON struct {
	Renderer    string       `json:"renderer"`
	Fingerprint string       `json:"fingerprint,omitempty"`
	Prompts     []promptJSON `json:"prompts"`
}

type promptJSON struct {
	TokenIDs []uint32      `json:"token_ids"`
	Features []featureJSON `json:"features,omitempty"`
}

type featureJSON struct {
	Modality string `json:"modality"`
	Hash     string `json:"hash"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
}

func printRendered(w io.Writer, result render.Result, asJSON bool) error {
	out := renderedJSON{Renderer: result.Renderer, Fingerprint: result.Fingerprint}
	for _, p := range result.Prompts {
		prompt := promptJSON{TokenIDs: p.Tokens}
		for _, f := range p.Features {
			prompt.Features = append(prompt.Features, featureJSON(f))
		}
		out.Prompts = append(out.Prompts, prompt)
	}
	enc := json.NewEncoder(w)
	if asJSON {
		return enc.Encode(out)
	}
	for _, p := range out.Prompts {
		if err := enc.Encode(p.TokenIDs); err != nil {
			return err
		}
	}
	return nil
}
