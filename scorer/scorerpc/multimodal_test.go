package scorerpc_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// recordedRenderer answers each recorded body as vLLM's render route did: with its ids, and the hashes and places of its
// images.
type recordedRenderer struct {
	t       *testing.T
	mu      sync.Mutex // guards answers
	answers map[string][]byte
}

func (f *recordedRenderer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	answer := f.answers[strings.Replace(string(body), `"return_mm_kwargs":false,`, "", 1)]
	f.mu.Unlock()
	if answer == nil {
		f.t.Errorf("the renderer got a body that nobody sent")
	}
	_, _ = w.Write(answer)
}

// answer is what the renderer will say of a recorded request.
func (f *recordedRenderer) answer(r *recording.Request) {
	type place struct {
		Offset int `json:"offset"`
		Length int `json:"length"`
	}
	hashes, places := map[string][]string{}, map[string][]place{}
	for _, m := range r.Features {
		hashes[m.Modality] = append(hashes[m.Modality], m.Hash)
		places[m.Modality] = append(places[m.Modality], place{m.Offset, m.Length})
	}
	said := map[string]any{"token_ids": r.Tokens, "features": nil}
	if len(r.Features) > 0 {
		said["features"] = map[string]any{"mm_hashes": hashes, "mm_placeholders": places, "kwargs_data": nil}
	}
	answer, err := json.Marshal(said)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[string(r.Body)] = answer
}

// Multimodal bodies are scored exactly through a remote renderer: its features are part of the keys. Each of the 75
// requests of the recording (some with images, some salted) is sent as the body that it was, at its time.
func TestScore_MultimodalRecording(t *testing.T) {
	f := &recordedRenderer{t: t, answers: make(map[string][]byte)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client, err := render.NewClient(render.Options{URL: server.URL, Protocol: render.ProtocolVLLM})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r := start(t, scorerpc.Options{Renderer: client})
	in, err := recording.Open(filepath.Join("..", "..", "test", "testdata", "recordings", "vllm-0.32-multimodal.kvrec"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	requests, images, cached := 0, 0, 0
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch rec.Kind {
		case recording.KindSource:
			src := *rec.Info
			src.Events, src.Replay = "", ""
			r.worker(t, src.Worker, "tiny-vl", src.Engine, func(w *ingest.Worker) { w.Sources = []events.Source{src} })
		case recording.KindMessage:
			m, err := events.ParseFrames(rec.Frames)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.fleet.Publish("w0", 0, []events.Message{m}); err != nil {
				t.Fatal(err)
			}
		case recording.KindRequest:
			f.answer(rec.Request)
			got := r.score(t, &kvscoutv1.ScoreRequest{HttpRequest: &kvscoutv1.HttpRequest{Path: rec.Request.Path, Body: rec.Request.Body}}).GetWorkers()[0]
			// Before the first batch nothing is known of the worker: a lower bound.
			if int(got.GetReusableTokens()) != rec.Request.CachedTokens || got.GetBound().GetKind() != exact && cached > 0 {
				t.Errorf("request %d: predicted %d, %v; the engine took %d", requests, got.GetReusableTokens(), got.GetBound(), rec.Request.CachedTokens)
			}
			requests++
			images += len(rec.Request.Features)
			cached += rec.Request.CachedTokens
		}
	}
	if requests != 75 || images == 0 || cached == 0 {
		t.Errorf("%d requests with %d images took %d tokens: that proves nothing", requests, images, cached)
	}
}
