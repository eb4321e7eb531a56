package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render"
)

const renderSpecHelp = `A render SPEC is a list of key=value, separated by commas, and says how the bodies of one model become tokens:
  model          the model's name, as its workers have it; must be given
  tokenizer      directory with tokenizer.json and the chat template: render in process
  profile        whose rules apply in process: vllm (default), sglang or trtllm
  max-model-len  longest prompt in process, in tokens; longer ones are refused as the engine does (default: none)
  served         names that bodies may call the model, separated by + (default: any)
  url            of the model's own renderer, instead of tokenizer
  protocol       what that speaks: vllm-render (default), sglang-renderer or trtllm-render`

// renderSpec says how the bodies of one model become tokens.
type renderSpec struct {
	model          string
	tokenizer      string
	profile        string
	maxModelLen    int
	served         []string
	url, protocol  string
	inProcess, set map[string]bool // keys given
}

// parseRenderSpec reads the command line's form.
func parseRenderSpec(text string) (renderSpec, error) {
	s := renderSpec{profile: "vllm", protocol: render.ProtocolVLLM, inProcess: make(map[string]bool), set: make(map[string]bool)}
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
		s.profile, s.inProcess[key] = value, true
	case "max-model-len":
		s.inProcess[key] = true
		if s.maxModelLen, err = strconv.Atoi(value); err != nil || s.maxModelLen < 1 {
			return fmt.Errorf("max-model-len %q is no positive number", value)
		}
	case "served":
		s.served, s.inProcess[key] = strings.Split(value, "+"), true
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
	case s.url != "" && len(s.inProcess) > 0:
		return errors.New("profile, max-model-len and served belong to tokenizer")
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
