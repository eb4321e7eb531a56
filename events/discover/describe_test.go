package discover

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// What is stated goes first, what the worker answers fills in the rest.
func TestDescribe(t *testing.T) {
	_, url := serve(t, map[string]string{"/kv_event_sources": vllmSources, "/v1/models": vllmModels, "/version": `{"version":"0.32.0"}`})
	stated := Worker{
		ID: "w", URL: url, Model: "mine", Role: RoleDecode,
		Sources: []events.Source{{Worker: "w", Model: "mine", SpeculativeEAGLE: true}},
	}
	got, err := newAsker(t, AskerOptions{}).Describe(t.Context(), stated)
	if err != nil {
		t.Fatal(err)
	}
	src := events.Source{Worker: "w", Model: "mine", Engine: "vllm", Version: "0.32.0", SpeculativeEAGLE: true}
	first, second := src, src
	first.Events, first.Replay, first.Topic = "tcp://127.0.0.1:5557", "tcp://127.0.0.1:5567", "kv"
	second.Rank, second.Events = 1, "tcp://127.0.0.1:5558"
	want := Worker{
		ID: "w", URL: url, Model: "mine", Role: RoleDecode, Aliases: []string{"tiny-alias"}, Adapters: []string{"lora-a", "lora-b"},
		Sources: []events.Source{first, second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDescribe_Errors(t *testing.T) {
	inside, err := ParsePolicy([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bodies map[string]string
		policy Policy
		want   error
	}{
		"no model":      {map[string]string{"/kv_event_sources": vllmSources}, Policy{}, ErrWorker},
		"no source":     {map[string]string{"/kv_event_sources": "[]", "/v1/models": vllmModels}, Policy{}, ErrWorker},
		"no engine":     {nil, Policy{}, ErrAnswer},
		"fails":         {map[string]string{"/kv_event_sources": "500"}, Policy{}, ErrAnswer},
		"out of bounds": {map[string]string{"/kv_event_sources": vllmSources, "/v1/models": vllmModels}, inside, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, c.bodies)
			_, err := newAsker(t, AskerOptions{Policy: c.policy}).Describe(t.Context(), Worker{ID: "w", URL: url})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	if _, err := newAsker(t, AskerOptions{}).Describe(t.Context(), Worker{ID: "w", URL: "w:8000"}); !errors.Is(err, ErrWorker) {
		t.Errorf("a URL that is none: %v", err)
	}
}
