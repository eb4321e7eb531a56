package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kvscout/kvscout/events"
)

// parseInfo reads a line of kind source.
func parseInfo(f *fields, id string) *events.Source {
	worker, rank, err := events.ParseID(id)
	if err != nil {
		f.within("source", err)
	}
	s := &events.Source{
		Worker: worker, Rank: rank,
		Engine: events.Engine(f.text("engine")), Version: f.text("version"), Model: f.text("model"),
		BlockSize:    f.count("block_size"),
		PairKeys:     f.flag("eagle"),
		ReuseReports: f.flag("reuse_reports"),
		HashFormat:   f.text("hash_format"),
	}
	switch method := f.text("speculative"); method {
	case "":
	case "eagle":
		s.SpeculativeEAGLE = true
	default: // it may cost blocks too, and nobody knows how many
		f.fail("speculative", fmt.Sprintf("%.40q, only eagle is known", method))
	}
	f.list("unpublished", func(value json.RawMessage) error {
		name, ok := jsonText(value)
		if !ok {
			return errors.New("has an element that is no string")
		}
		s.Unpublished = append(s.Unpublished, events.Hidden(name))
		return nil
	})
	return s
}

// parseRequest reads a line of kind request. What it does not know goes to Extra.
func parseRequest(f *fields) *Request {
	f.must("prompt_tokens")
	f.must("cached_tokens") // without the engine's word there is nothing to compare with, and 0 would be a lie
	q := &Request{
		After: f.sequences("after"),
		Model: f.text("model"), Adapter: f.text("adapter"), CacheSalt: f.text("cache_salt"),
		ExtraKey: f.text("extra_key"), LoraID: f.text("lora_id"),
		Path:         f.text("path"),
		PromptTokens: f.count("prompt_tokens"), CachedTokens: f.count("cached_tokens"),
		ID: f.text("rid"),
	}
	if body := f.text("body"); body != "" {
		q.Body = []byte(body)
	}
	_, q.HasHost = f.left["host_cached_tokens"]
	q.HostCachedTokens = f.count("host_cached_tokens")
	tokens, err := unpackTokens(f.base64("token_ids"))
	if err != nil {
		f.within("token_ids", err)
	}
	q.Tokens = tokens
	if value, ok := f.take("features"); ok {
		q.Features, err = parseFeatures(value)
		if err != nil {
			f.within("features", err)
		}
	}
	for name, value := range f.left {
		q.extra(name, value)
	}
	return q
}

func (q *Request) extra(name string, value json.RawMessage) {
	if q.Extra == nil {
		q.Extra = make(map[string]string)
	}
	text, ok := jsonText(value)
	if !ok {
		text = string(value)
	}
	q.Extra[name] = text
}

func (f *fields) count(name string) int {
	n := f.integer(name)
	if n < 0 || n > math.MaxInt32 {
		f.fail(name, fmt.Sprintf("%d, not from 0 to 2147483647", n))
	}
	return int(n)
}

func (f *fields) sequences(name string) map[string]uint64 {
	var out map[string]uint64
	f.members(name, func(source string, value json.RawMessage) error {
		seq, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil {
			return errors.New("has a sequence number that is no unsigned 64-bit integer")
		}
		if out == nil {
			out = make(map[string]uint64)
		}
		if _, dup := out[source]; dup {
			return fmt.Errorf("member %.40q is given twice", source)
		}
		out[source] = seq
		return nil
	})
	return out
}

// parseFeatures reads vLLM's form, {"mm_hashes": {modality: [hash]}, "mm_placeholders": {modality: [{offset, length}]}},
// and puts the items of all modalities into prompt order.
func parseFeatures(object []byte) ([]Feature, error) {
	f, err := newFields(object)
	if err != nil {
		return nil, err
	}
	var out []Feature
	hashes := make(map[string]int) // modality: index of its next item in out
	f.members("mm_hashes", func(modality string, list json.RawMessage) error {
		hashes[modality] = len(out)
		return eachElement(list, maxItems, func(value json.RawMessage) error {
			hash, ok := jsonText(value)
			if !ok {
				return errors.New("has a hash that is no string")
			}
			if len(out) == maxItems {
				return fmt.Errorf("over %d items", maxItems)
			}
			out = append(out, Feature{Modality: modality, Hash: hash, Offset: -1})
			return nil
		})
	})
	f.members("mm_placeholders", func(modality string, list json.RawMessage) error {
		return eachElement(list, maxItems, func(value json.RawMessage) error {
			i, ok := hashes[modality]
			if !ok || i >= len(out) || out[i].Modality != modality {
				return errors.New("has more places than there are hashes")
			}
			hashes[modality]++
			return out[i].place(value)
		})
	})
	if f.err != nil {
		return nil, f.err
	}
	if slices.ContainsFunc(out, func(m Feature) bool { return m.Offset < 0 }) {
		return nil, errors.New("mm_placeholders has fewer places than there are hashes")
	}
	slices.SortStableFunc(out, func(a, b Feature) int { return cmp.Compare(a.Offset, b.Offset) })
	return out, nil
}

func (m *Feature) place(value json.RawMessage) error {
	f, err := newFields(value)
	if err != nil {
		return err
	}
	f.must("offset")
	f.must("length")
	m.Offset, m.Length = f.count("offset"), f.count("length")
	return f.err
}
