package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/local"
	"github.com/kvscout/kvscout/render/pyval"
)

const renderSpecHelp = `A render SPEC is a list of key=value, separated by commas, and says how the bodies of one model become tokens:
  model          the model's name, as its workers have it; must be given
  tokenizer      directory with tokenizer.json and the chat template: render in process
  profile        whose rules apply in process: vllm (default), sglang or trtllm
  max-model-len  longest prompt in process, in tokens; longer ones are refused as the engine does (default: none)
  served         names that bodies may call the model, separated by + (default: any)
  content-format how the template wants contents: auto (default), string or openai
  template-kwargs file with the engine's default arguments of the template, a JSON object (default: none)
  tool-parser    whether the engine has a tool parser; false refuses tools as it does (default: true)
  url            of the model's own renderer, instead of tokenizer
  protocol       what that speaks: vllm-render (default), sglang-renderer or trtllm-render`

// renderSpec says how the bodies of one model become tokens.
type renderSpec struct {
	model         string
	tokenizer     string
	local         localOptions
	url, protocol string

	set map[string]bool // keys given
}

// localOptions are what an in-process renderer needs to know of the engine.
type localOptions struct {
	profile, contentFormat, kwargsFile string
	maxModelLen                        int
	served                             []string
	noToolParser                       bool
}

// options reads the file of default arguments and makes the options of a renderer.
func (o *localOptions) options() (local.Options, error) {
	out := local.Options{
		Profile: o.profile, ContentFormat: o.contentFormat, MaxModelLen: o.maxModelLen, Served: o.served,
		NoToolParser: o.noToolParser,
	}
	if o.kwargsFile == "" {
		return out, nil
	}
	data, err := readBounded(o.kwargsFile, nil)
	if err != nil {
		return out, err
	}
	v, err := pyval.Parse(data)
	if err != nil {
		return out, fmt.Errorf("%s: %w", o.kwargsFile, err)
	}
	kwargs, ok := v.(*pyval.Dict)
	if !ok {
		return out, fmt.Errorf("%s is no JSON object", o.kwargsFile)
	}
	out.TemplateKwargs = kwargs
	return out, nil
}

// localKeys are the keys that only renderers in process have.
var localKeys = []string{"profile", "max-model-len", "served", "content-format", "template-kwargs", "tool-parser"}

// parseRenderSpec reads the command line's form.
func parseRenderSpec(text string) (renderSpec, error) {
	s := renderSpec{local: localOptions{profile: "vllm"}, protocol: render.ProtocolVLLM, set: make(map[string]bool)}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "" {
			return s, fmt.Errorf("%q is not key=value", part)
		}
		if s.set[key] {
			return s, fmt.Errorf("%s is given twice", key)
		}
		s.set[key] = true
		if err := s.put(key, value); err != nil {
			return s, err
		}
	}
	return s, s.check()
}

func (s *renderSpec) put(key, value string) (err error) {
	switch key {
	case "model":
		s.model = value
	case "tokenizer":
		s.tokenizer = value
	case "profile":
		s.local.profile = value
	case "max-model-len":
		if s.local.maxModelLen, err = strconv.Atoi(value); err != nil || s.local.maxModelLen < 1 {
			return fmt.Errorf("max-model-len %q is no positive number", value)
		}
	case "served":
		s.local.served = strings.Split(value, "+")
	case "content-format":
		s.local.contentFormat = value
	case "template-kwargs":
		s.local.kwargsFile = value
	case "tool-parser":
		has, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("tool-parser %q is not true or false", value)
		}
		s.local.noToolParser = !has
	case "url":
		s.url = value
	case "protocol":
		s.protocol = value
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

func (s *renderSpec) check() error {
	switch {
	case s.model == "":
		return errors.New("model is missing")
	case s.tokenizer == "" && s.url == "":
		return errors.New("neither tokenizer nor url is given")
	case s.tokenizer != "" && s.url != "":
		return errors.New("tokenizer and url are both given")
	case s.url != "" && slices.ContainsFunc(localKeys, func(key string) bool { return s.set[key] }):
		return fmt.Errorf("%s belong to tokenizer", strings.Join(localKeys, ", "))
	case s.tokenizer != "" && s.set["protocol"]:
		return errors.New("protocol belongs to url")
	default:
		return nil
	}
}

// parseRenderSpecs reads all of them; no two may be for one model.
func parseRenderSpecs(texts []string) ([]renderSpec, error) {
	var out []renderSpec
	var faults []error
	seen := make(map[string]bool)
	for _, text := range texts {
		s, err := parseRenderSpec(text)
		if err == nil && seen[s.model] {
			err = fmt.Errorf("model %q has one already", s.model)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("render-model %q: %w", text, err))
			continue
		}
		seen[s.model] = true
		out = append(out, s)
	}
	return out, errors.Join(faults...)
}
