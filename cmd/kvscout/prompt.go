package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/render"
)

// scopeOptions say in which cache namespace a prompt runs.
type scopeOptions struct {
	model, adapter, extraKey   string
	cacheSalt, cacheSaltFile   string
	tokens, hashes             string
	blockSize, hashedPromptLen uint32
}

func (o *scopeOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.model, "model", "", "served model name (default: the only one the server knows)")
	f.StringVar(&o.tokens, "tokens", "", "`FILE` with the prompt as a JSON list of token ids; - is standard input (default: none)")
	f.StringVar(&o.hashes, "hashes", "", "`FILE` with the prompt as a JSON list of 64-bit block keys, as numbers or \"0x...\" texts; - is standard input (default: none)")
	f.Uint32Var(&o.blockSize, "block-size", 0, "tokens per block of --hashes (default: none, must be given with it)")
	f.Uint32Var(&o.hashedPromptLen, "prompt-tokens", 0, "tokens of the whole prompt of --hashes (default 0: what the blocks cover)")
	f.StringVar(&o.adapter, "adapter", "", "name of the LoRA adapter (default: none)")
	f.StringVar(&o.cacheSalt, "cache-salt", "", "cache salt of the request; others see it in the process list, so prefer KVSCOUT_CACHE_SALT or the next flag (default: none)")
	f.StringVar(&o.cacheSaltFile, "cache-salt-file", "", "`FILE` that holds the cache salt; a newline at its end is left out (default: none)")
	f.StringVar(&o.extraKey, "extra-key", "", "engine-specific namespace, or KVSCOUT_EXTRA_KEY (default: none)")
}

// salt is the cache salt from wherever it was given.
func (o *scopeOptions) salt() (string, error) {
	if o.cacheSaltFile == "" {
		return o.cacheSalt, nil
	}
	if o.cacheSalt != "" {
		return "", misuse("cache-salt and cache-salt-file are both given")
	}
	data, err := readBounded(o.cacheSaltFile, nil)
	return strings.TrimRight(string(data), "\r\n"), err
}

// readTokens reads --tokens; nil without it. Ids are judged by the server.
func (o *scopeOptions) readTokens(stdin io.Reader) (*kvscoutv1.Tokens, error) {
	if o.tokens == "" {
		return nil, nil
	}
	data, err := readBounded(o.tokens, stdin)
	if err != nil {
		return nil, err
	}
	out := new(kvscoutv1.Tokens)
	if err := json.Unmarshal(data, &out.Ids); err != nil {
		return nil, fmt.Errorf("%s is not a JSON list of token ids", fileName(o.tokens)) // err would show tokens
	}
	return out, nil
}

// readHashes reads --hashes; nil without it.
func (o *scopeOptions) readHashes(stdin io.Reader) (*kvscoutv1.BlockHashes, error) {
	if o.hashes == "" {
		if o.blockSize != 0 || o.hashedPromptLen != 0 {
			return nil, misuse("block-size and prompt-tokens belong to hashes")
		}
		return nil, nil
	}
	if o.blockSize == 0 {
		return nil, misuse("hashes needs block-size")
	}
	data, err := readBounded(o.hashes, stdin)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("%s is not a JSON list of block keys", fileName(o.hashes))
	}
	out := &kvscoutv1.BlockHashes{BlockSize: o.blockSize, PromptTokens: o.hashedPromptLen}
	for i, item := range items {
		key, err := strconv.ParseUint(string(bytes.Trim(item, `"`)), 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d is not a 64-bit block key", fileName(o.hashes), i)
		}
		out.Packed = binary.LittleEndian.AppendUint64(out.Packed, key)
	}
	return out, nil
}

// requestOptions are the forms of a prompt that only Score takes.
type requestOptions struct {
	scopeOptions
	body, path, prompt string
	headers            []string
	promptIndex        uint32
	returnTokens       bool
}

func (o *requestOptions) register(f *pflag.FlagSet) {
	o.scopeOptions.register(f)
	f.StringVar(&o.body, "body", "", "`FILE` with the HTTP body that the engine would get; - is standard input; the server needs a renderer (default: none)")
	f.StringVar(&o.path, "path", render.PathChat, "HTTP path that --body would be sent to")
	f.StringArrayVar(&o.headers, "header", nil, "`NAME=VALUE` of a header that --body would be sent with, such as the tenant's; may be repeated (default: none)")
	f.Uint32Var(&o.promptIndex, "prompt-index", 0, "which prompt of a --body of several is rated, from 0 (default: one of several is refused)")
	f.BoolVar(&o.returnTokens, "return-tokens", false, "have the prompt's tokens in the answer, for --json")
	f.StringVar(&o.prompt, "prompt", "", "`TEXT` of the prompt, sent as a body of "+render.PathCompletions+"; the server needs a renderer (default: none)")
}

// request makes the part of a ScoreRequest that says what the prompt is.
func (o *requestOptions) request(stdin io.Reader, set func(string) bool) (*kvscoutv1.ScoreRequest, error) {
	given := 0
	for _, name := range []string{"tokens", "hashes", "body", "prompt"} {
		if set(name) {
			given++
		}
	}
	if given != 1 {
		return nil, misuse("give exactly one of --tokens, --body, --prompt and --hashes, not %d of them", given)
	}
	salt, err := o.salt()
	if err != nil {
		return nil, err
	}
	req := &kvscoutv1.ScoreRequest{
		Model: o.model, Adapter: o.adapter, CacheSalt: salt, ExtraKey: o.extraKey, ReturnTokens: o.returnTokens,
	}
	if set("prompt-index") {
		req.PromptIndex = &o.promptIndex
	}
	if req.Tokens, err = o.readTokens(stdin); err != nil {
		return nil, err
	}
	if req.BlockHashes, err = o.readHashes(stdin); err != nil {
		return nil, err
	}
	req.HttpRequest, err = o.httpRequest(stdin, set)
	return req, err
}

func (o *requestOptions) httpRequest(stdin io.Reader, set func(string) bool) (*kvscoutv1.HttpRequest, error) {
	switch {
	case set("body"):
		out := &kvscoutv1.HttpRequest{Path: o.path, Headers: make(map[string]string)}
		for _, h := range o.headers {
			name, value, ok := strings.Cut(h, "=")
			if !ok || name == "" {
				return nil, misuse("header is not NAME=VALUE") // its value may be a secret
			}
			out.Headers[name] = value
		}
		var err error
		out.Body, err = readBounded(o.body, stdin)
		return out, err
	case len(o.headers) > 0:
		return nil, misuse("header belongs to body")
	case set("prompt"):
		body := map[string]string{"prompt": o.prompt}
		if o.model != "" {
			body["model"] = o.model
		}
		data, err := json.Marshal(body)
		return &kvscoutv1.HttpRequest{Path: render.PathCompletions, Body: data}, err
	default:
		return nil, nil
	}
}

// warn tells something beside the output.
func warn(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "kvscout: "+format+"\n", args...)
}

// packTokens is the packed form of ids below 2^31.
func packTokens(ids []uint32) []byte {
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint32(out, id)
	}
	return out
}
