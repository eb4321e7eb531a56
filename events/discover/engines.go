package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/events"
)

// Bounds on what one answer may describe.
const (
	maxRanks    = 1024
	maxText     = 1024
	maxAdapters = 4096
)

// vllm asks a vLLM server. errAbsent means that it is none, or one older than the path.
func (q question) vllm(ctx context.Context) (*Worker, error) {
	var list vllmAnswer
	if err := q.client.get(ctx, q.base, "/kv_event_sources", &list); err != nil {
		return nil, err
	}
	if len(list) > maxRanks {
		return nil, fmt.Errorf("%w: %d event sources, limit %d", ErrAnswer, len(list), maxRanks)
	}
	w := &Worker{}
	for i, s := range list {
		src := events.Source{Rank: i, Engine: events.EngineVLLM, Topic: s.Topic}
		if s.Rank != nil {
			src.Rank = *s.Rank
		}
		if err := q.place(&src, s.Endpoint, s.Replay); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(w.Sources, func(o events.Source) bool { return o.Rank == src.Rank }) || src.Rank < 0 {
			return nil, fmt.Errorf("%w: rank %d is told twice or negative", ErrAnswer, src.Rank)
		}
		w.Sources = append(w.Sources, src)
	}
	if err := q.names(ctx, w); err != nil {
		return nil, err
	}
	version := q.version(ctx)
	for i := range w.Sources {
		w.Sources[i].Version = version
	}
	return w, nil
}

// place sets the endpoints of a source as the worker means them (invariant 4).
func (q question) place(src *events.Source, live, replay string) (err error) {
	if len(src.Topic) > maxText {
		return fmt.Errorf("%w: a topic of %d bytes", ErrAnswer, len(src.Topic))
	}
	if src.Events, err = q.policy.endpoint(live, q.host); err != nil {
		return err
	}
	if replay != "" {
		src.Replay, err = q.policy.endpoint(replay, q.host)
	}
	return err
}

// names fills in model, aliases and adapters from /v1/models: a card with a parent is an adapter of it. A server
// without that path leaves them open.
func (q question) names(ctx context.Context, w *Worker) error {
	var models struct {
		Data []struct {
			ID     string `json:"id"`
			Parent string `json:"parent"`
		} `json:"data"`
	}
	switch err := q.client.get(ctx, q.base, "/v1/models", &models); {
	case errors.Is(err, errAbsent):
		return nil
	case err != nil:
		return err
	}
	for _, m := range models.Data {
		switch {
		case m.ID == "" || len(m.ID) > maxText:
		case m.Parent != "":
			if len(w.Adapters) < maxAdapters {
				w.Adapters = append(w.Adapters, m.ID)
			}
		case w.Model == "":
			w.Model = m.ID
		case m.ID != w.Model && len(w.Aliases) < 64:
			w.Aliases = append(w.Aliases, m.ID)
		}
	}
	slices.Sort(w.Adapters) // the order in which adapters were loaded is no change
	return nil
}

// version asks for the engine's version, which is for people: none is no failure.
func (q question) version(ctx context.Context) string {
	var v struct {
		Version string `json:"version"`
	}
	if q.client.get(ctx, q.base, "/version", &v) != nil || len(v.Version) > maxText {
		return ""
	}
	return v.Version
}

// serverInfo is what is read of /server_info: SGLang's server arguments with kv_events, or TensorRT-LLM's.
type serverInfo struct {
	Model       string    `json:"served_model_name"`
	ModelPath   string    `json:"model_path"`
	Version     string    `json:"version"`
	Mode        string    `json:"disaggregation_mode"`
	Speculative string    `json:"speculative_algorithm"`
	PageSize    int       `json:"page_size"`
	DCP         int       `json:"dcp_size"`
	EventConfig rawText   `json:"kv_events_config"`
	Events      *kvEvents `json:"kv_events"`
	Fingerprint *struct {
		Digest string `json:"digest"`
	} `json:"render_fingerprint"`
}

// kvEvents is SGLang's kv_events; rank r publishes at the port base + r.
type kvEvents struct {
	Publisher string `json:"publisher"`
	Host      string `json:"endpoint_host"`
	Port      int    `json:"endpoint_port_base"`
	Replay    int    `json:"replay_endpoint_port_base"`
	Topic     string `json:"topic"`
	BlockSize int    `json:"block_size"`
	Ranks     int    `json:"dp_size"`
}

// rawText is a JSON value that may be a string of JSON or the value itself.
type rawText string

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawText) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*r = rawText(s)
	} else {
		*r = rawText(b)
	}
	return nil
}

// bigrams are the speculative algorithms under which SGLang keys its tree by pairs of tokens.
var bigrams = map[string]bool{"EAGLE": true, "EAGLE3": true, "FROZEN_KV_MTP": true}

// sglang asks an SGLang server. errAbsent means that it is none.
func (q question) sglang(ctx context.Context) (*Worker, error) {
	var info serverInfo
	if err := q.client.get(ctx, q.base, "/server_info", &info); err != nil {
		return nil, err
	}
	if info.Events == nil && info.PageSize == 0 && info.ModelPath == "" {
		return nil, fmt.Errorf("/server_info is not SGLang's: %w", errAbsent)
	}
	w := &Worker{Model: info.Model}
	if w.Model == "" {
		w.Model = info.ModelPath
	}
	if info.Mode == RolePrefill || info.Mode == RoleDecode {
		w.Role = info.Mode
	}
	if info.Events == nil || info.Events.Publisher == "null" {
		return w, nil
	}
	src, err := q.sglangSource(info)
	if err != nil {
		return nil, err
	}
	if w.Sources, err = src.Ranks(max(1, info.Events.Ranks)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return w, nil
}

// sglangSource is rank 0 of an SGLang server.
func (q question) sglangSource(info serverInfo) (events.Source, error) {
	e := info.Events
	src := events.Source{
		Engine: events.EngineSGLang, Version: info.Version, Topic: e.Topic,
		// With decode context parallelism the tree's page, which is published, is wider than page_size.
		BlockSize: e.BlockSize * max(1, info.DCP),
		PairKeys:  bigrams[strings.ToUpper(info.Speculative)],
	}
	switch {
	case e.Publisher != "zmq" && e.Publisher != "":
		return src, fmt.Errorf("%w: publisher %.100q is not zmq", ErrAnswer, e.Publisher)
	case e.Ranks > maxRanks || e.Ranks < 0:
		return src, fmt.Errorf("%w: %d ranks, limit %d", ErrAnswer, e.Ranks, maxRanks)
	case e.BlockSize < 0 || src.BlockSize > 1<<20 || info.DCP > 1<<10 || info.DCP < 0 || e.BlockSize > 1<<20:
		return src, fmt.Errorf("%w: blocks of %d tokens times %d", ErrAnswer, e.BlockSize, info.DCP)
	}
	if config := (struct {
		Format string `json:"format"`
	}{}); json.Unmarshal([]byte(info.EventConfig), &config) == nil && config.Format == events.HashFormatDynamo {
		src.HashFormat = events.HashFormatDynamo
	}
	replay := ""
	if e.Replay != 0 {
		replay = sglangEndpoint(e.Host, e.Replay)
	}
	return src, q.place(&src, sglangEndpoint(e.Host, e.Port), replay)
}

func sglangEndpoint(host string, port int) string {
	return "tcp://" + net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// trtllm asks a TensorRT-LLM server. It tells its fingerprint and its names, not where its events are.
func (q question) trtllm(ctx context.Context) (*Worker, error) {
	var info serverInfo
	if err := q.client.get(ctx, q.base, "/server_info", &info); err != nil {
		return nil, err
	}
	w := &Worker{Sources: []events.Source{{Engine: events.EngineTRTLLM, Version: q.version(ctx)}}}
	if f := info.Fingerprint; f != nil && len(f.Digest) <= maxText {
		w.Fingerprint = f.Digest
	}
	return w, q.names(ctx, w)
}
