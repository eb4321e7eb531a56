package profile

import (
	"math"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

const anyLength = math.MaxInt

// vllmShared are the rules of fields that chats and completions of vLLM share (protocol.py of either, and
// SamplingParams._verify_args).
var vllmShared = map[string]rule{
	"model": optional(aString), "user": optional(aString), "request_id": aString, "session_id": optional(aString),
	"frequency_penalty":  optional(aFloat(between(-2, 2))),
	"presence_penalty":   optional(aFloat(between(-2, 2))),
	"repetition_penalty": optional(aFloat(func(f float64) bool { return f > 0 && !math.IsInf(f, 0) })),
	"temperature":        optional(aFloat(between(0, 2))),
	"top_p":              optional(aFloat(func(f float64) bool { return f > 0 && f <= 1 })),
	"min_p":              optional(aFloat(between(0, 1))),
	"top_k":              optional(anInt(-1, math.MaxInt64)),
	"length_penalty":     aFloat(anyFloat),
	"logit_bias":         optional(logitBias),
	"seed":               optional(anInt(math.MinInt64, math.MaxInt64)),
	"stop":               optional(stopTexts),
	"stop_token_ids":     optional(listOf(anInt(math.MinInt64, math.MaxInt64), anyLength)),
	"allowed_token_ids":  optional(listOf(anInt(math.MinInt64, math.MaxInt64), anyLength)),
	"logprob_token_ids":  onlyNone,
	"bad_words":          listOf(fullText, anyLength),
	"min_tokens":         anInt(0, math.MaxInt64),
	"stream":             optional(aBool), "use_beam_search": aBool, "watermarking": optional(aBool),
	"include_stop_str_in_output": aBool, "ignore_eos": aBool, "skip_special_tokens": aBool,
	"spaces_between_special_tokens": aBool, "add_special_tokens": aBool,
	"return_tokens_as_token_ids": optional(aBool), "return_token_ids": optional(aBool), "return_token_offsets": optional(aBool),
	"return_mm_kwargs": optional(aBool), "mm_payload": oneOf("tensors", "none"),
	"truncate_prompt_tokens":      optional(anInt(-1, math.MaxInt64)),
	"truncation_side":             optional(oneOf("left", "right")),
	"prompt_logprobs":             optional(anInt(-1, math.MaxInt64)),
	"priority":                    anInt(math.MinInt64, math.MaxInt64),
	"routed_experts_prompt_start": anInt(0, math.MaxInt64),
	"stream_interval":             optional(anInt(1, math.MaxInt64)),
	"kv_transfer_params":          optional(aDict), "ec_transfer_params": optional(aDict),
	"vllm_xargs": optional(scalars), "cache_salt": optional(vllmSalt),
	"structured_outputs": onlyNone, "repetition_detection": onlyNone, "thinking_token_budget": optional(anyBudget),
	"response_format": optional(responseFormat), "stream_options": optional(streamOptions),
}

func logitBias(v pyval.Value) verdict {
	d, ok := v.(*pyval.Dict)
	if !ok {
		return bad
	}
	if d.Len() > 0 {
		return unsure // keys must be tokens of the vocabulary
	}
	return good
}

func stopTexts(v pyval.Value) verdict {
	if s, ok := v.(string); ok {
		return fullText(s)
	}
	return listOf(fullText, 4)(v) // VLLM_MAX_STOP_STRINGS
}

// fullText is a text that is not empty.
func fullText(v pyval.Value) verdict {
	s, ok := v.(string)
	if !ok || s == "" {
		return bad
	}
	return good
}

func scalars(v pyval.Value) verdict {
	d, ok := v.(*pyval.Dict)
	if !ok {
		return bad
	}
	for _, e := range d.Entries() {
		switch e.Value.(type) {
		case string, int64, float64:
		default:
			return unsure
		}
	}
	return good
}

func anyBudget(v pyval.Value) verdict {
	n, ok := toInt(v)
	if ok == good && n < -1 {
		return bad
	}
	if _, isInt := v.(int64); !isInt {
		return unsure
	}
	return ok
}

// vllmSalt is validate_cache_salt.
func vllmSalt(v pyval.Value) verdict {
	s, ok := v.(string)
	if !ok || s == "" || pyval.Len(s) > 128 || strings.ContainsAny(s, "@/\\\x00") {
		return bad
	}
	return good
}

// responseFormat takes the forms whose validation is simple. It changes no tokens of the prompt.
func responseFormat(v pyval.Value) verdict {
	d, ok := v.(*pyval.Dict)
	if !ok {
		return bad
	}
	switch stringField(d, "type") {
	case "text", "json_object":
		return good
	case "json_schema":
		schema, _ := d.Get("json_schema")
		if isNone(schema) {
			return bad
		}
		if s, ok := schema.(*pyval.Dict); ok && stringField(s, "name") != "" {
			if of, _ := s.Get("schema"); aDict(of) == good {
				return good
			}
		}
		return unsure
	case "structural_tag":
		return unsure
	}
	return bad
}

func streamOptions(v pyval.Value) verdict {
	d, ok := v.(*pyval.Dict)
	if !ok {
		return bad
	}
	for _, e := range d.Entries() {
		if name := e.Key.(string); name == "include_usage" || name == "continuous_usage_stats" {
			if optional(aBool)(e.Value) == bad {
				return bad
			}
		}
	}
	return good
}

// vllmCommon checks what concerns several fields at once, and reads the limits.
func vllmCommon(d *pyval.Dict, model ModelConfig, maxTokens string, defMax int) (limits, error) {
	l := limits{maxLen: model.MaxModelLen, defaultSide: "left", copies: 1}
	if options, _ := d.Get("stream_options"); pyvalTruth(options) && !boolean(d, "stream", false) {
		return l, refused(ReasonField, "stream_options without stream")
	}
	if boolean(d, "use_beam_search", false) {
		return l, notExact(ReasonUnusual, "use_beam_search")
	}
	if n, ok := integer(d, "prompt_logprobs"); ok && n != 0 && boolean(d, "stream", false) {
		return l, refused(ReasonField, "prompt_logprobs with stream")
	}
	if n, ok := integer(d, "n"); ok {
		if l.copies = n; n < 1 {
			return l, refused(ReasonField, "n")
		}
		if n > 1024 {
			return l, notExact(ReasonUnusual, "n")
		}
	}
	if t, ok := toFloatField(d, "temperature"); ok && t == 0 && l.copies > 1 {
		return l, refused(ReasonField, "n with greedy sampling")
	}
	l.maxTokens = defMax
	asked, set := integer(d, maxTokens)
	if set {
		l.maxTokens = asked
	}
	if l.maxLen > 0 && l.maxTokens > l.maxLen {
		return l, refused(ReasonLength, "%s is over the context length", maxTokens)
	}
	if set && (asked < 0 || asked == 0 && !(boolean(d, "echo", false) && maxTokens == "max_tokens" && defMax > 0)) {
		return l, refused(ReasonField, "%s", maxTokens)
	}
	l.echoOnly = set && asked == 0
	if l.minTokens, _ = integer(d, "min_tokens"); l.maxTokens > 0 && l.minTokens > l.maxTokens {
		return l, refused(ReasonField, "min_tokens")
	}
	l.truncate, l.truncateSet = integer(d, "truncate_prompt_tokens")
	l.side = stringField(d, "truncation_side")
	switch {
	case l.truncateSet && l.truncate == 0:
		return l, notExact(ReasonTruncation, "truncate_prompt_tokens of 0")
	case l.truncateSet && l.maxLen > 0 && l.truncate > l.maxLen:
		return l, refused(ReasonLength, "truncate_prompt_tokens is over the context length")
	}
	return l, nil
}

func pyvalTruth(v pyval.Value) bool { return v != nil && pyval.Truth(v) }

func toFloatField(d *pyval.Dict, name string) (float64, bool) {
	v, _ := d.Get(name)
	if isNone(v) {
		return 0, false
	}
	f, ok := toFloat(v)
	return f, ok == good
}
