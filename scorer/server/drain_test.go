package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

// slowVLLM is a render server, not ours, that answers once it is let.
func slowVLLM(t *testing.T, entered, leave chan struct{}) render.Renderer {
	t.Helper()
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		entered <- struct{}{}
		<-leave
		_, _ = io.WriteString(w, `[{"token_ids":[1,2,3]}]`)
	}))
	t.Cleanup(fake.Close)
	c, err := render.NewClient(render.Options{URL: fake.URL, Protocol: render.ProtocolVLLM})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A request of a stream that is under way when the server shuts down is answered; then the stream ends with NOT_READY.
func TestServe_AnswersWhatIsUnderWay(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	if _, err := fleet.Register(ingest.Worker{ID: "w0", Model: "m", Sources: []events.Source{{Engine: events.EngineVLLM}}}); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(o *server.Options) {
		o.Score = scorerpc.New(index, fleet, scorerpc.Options{Renderer: slowVLLM(t, entered, leave)})
	})
	c := kvscoutv1connect.NewScoreServiceClient(client(t, true), r.url(""), connect.WithGRPC())
	stream := c.ScoreStream(t.Context())
	body := &kvscoutv1.HttpRequest{Path: render.PathCompletions, Body: []byte(`{"model":"m","prompt":"x"}`)}
	if err := stream.Send(&kvscoutv1.ScoreStreamRequest{Request: &kvscoutv1.ScoreRequest{Id: "a", HttpRequest: body}}); err != nil {
		t.Fatal(err)
	}
	<-entered
	r.stop()
	close(leave)
	if resp, err := stream.Receive(); err != nil || resp.GetResult().GetId() != "a" || resp.GetResult().GetResponse().GetPromptTokens() != 3 {
		t.Errorf("under way: %v, %v", resp, err)
	}
	if _, err := stream.Receive(); connect.CodeOf(err) != connect.CodeUnavailable || reason(err) != "NOT_READY" {
		t.Errorf("the stream ended with %v, reason %q", err, reason(err))
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}
