package scorerpc

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/render"
)

// Render renders a body and rates nothing.
func (s *Service) Render(ctx context.Context, req *connect.Request[kvscoutv1.RenderRequest]) (*connect.Response[kvscoutv1.RenderResponse], error) {
	out, err := s.renderOnly(ctx, req.Msg)
	if err != nil {
		return nil, s.failed(ctx, err).Connect()
	}
	s.requests.Add(1)
	return connect.NewResponse(out), nil
}

func (s *Service) renderOnly(ctx context.Context, req *kvscoutv1.RenderRequest) (*kvscoutv1.RenderResponse, error) {
	h := req.GetHttpRequest()
	if h == nil {
		return nil, indexrpc.Failf(indexrpc.ReasonNoPrompt, "http_request is not set")
	}
	if !s.calls.Enter() {
		return nil, indexrpc.Overloaded("more than %d calls", s.opts.MaxCalls)
	}
	defer s.calls.Leave()
	if err := s.checkRenderable(h); err != nil {
		return nil, err
	}
	said, err := scanBody(h.GetBody())
	if err != nil {
		return nil, err
	}
	p := prompt{query: indexer.Query{}}
	if err := s.resolveNames(&p, req.GetModel(), said.model); err != nil {
		return nil, err
	}
	if own, err := s.callerTokens(h.GetBody(), &said); err != nil || own != nil {
		return &kvscoutv1.RenderResponse{
			Prompts: []*kvscoutv1.RenderedPrompt{{Tokens: packed(own)}},
			Render:  &kvscoutv1.RenderInfo{Renderer: "caller", Prompts: 1, Duration: durationpb.New(0)},
		}, err
	}
	result, err := s.render(ctx, h, &p, &said)
	if err != nil {
		return nil, err
	}
	out := &kvscoutv1.RenderResponse{Render: s.renderInfo(result)}
	for _, got := range result.Prompts {
		if err := indexrpc.CheckLength(len(got.Tokens), s.opts.MaxPromptTokens); err != nil {
			return nil, err
		}
		out.Prompts = append(out.Prompts, &kvscoutv1.RenderedPrompt{
			Tokens: packed(got.Tokens), Features: featuresOf(got.Features), SkipsPrefixCache: got.SkipsPrefixCache,
		})
	}
	return out, nil
}

// render has the body rendered by the renderer of its model: without the members that only gateways know, and by the
// base model's name where the body names an adapter, which renderers do not know. Nothing else of it changes.
func (s *Service) render(ctx context.Context, h *kvscoutv1.HttpRequest, p *prompt, said *bodyFacts) (render.Result, error) {
	if err := ctx.Err(); err != nil {
		return render.Result{}, err
	}
	edit := render.Edit{Strip: s.opts.StripFields}
	if said.model != "" && said.model == p.query.Adapter && said.model != p.query.Model {
		name, err := json.Marshal(p.query.Model)
		if err != nil {
			return render.Result{}, err
		}
		edit.Set = map[string]json.RawMessage{"model": name}
	}
	body, err := edit.Apply(h.GetBody())
	if err != nil {
		return render.Result{}, badBody(err.Error())
	}
	result, err := s.ask(ctx, render.Request{Model: p.query.Model, Path: h.GetPath(), Body: body, Header: s.forwarded(h)})
	if err != nil {
		return render.Result{}, err
	}
	for _, got := range result.Prompts {
		if len(got.Tokens) == 0 {
			result.Prompts = nil
			break
		}
	}
	if len(result.Prompts) == 0 {
		return render.Result{}, indexrpc.Failf(indexrpc.ReasonRendererUnusable, "renderer answered without tokens") // rule 14
	}
	return result, nil
}

// ask is the renderer's Render, timed.
func (s *Service) ask(ctx context.Context, req render.Request) (render.Result, error) {
	ctx, rendering := s.step(ctx, stepRender, s.opts.Rendered != nil)
	result, err := s.opts.Renderer.Render(ctx, req)
	outcome := RenderedFresh
	switch {
	case err != nil:
		outcome = RenderedFailed
	case result.Cached:
		outcome = RenderedCached
	}
	rendering.say("renderer", result.Renderer)
	rendering.say("outcome", outcome)
	took := rendering.end(err, len(result.Prompts), "prompts")
	if s.opts.Rendered != nil {
		s.opts.Rendered(req.Model, outcome, took)
	}
	return result, err
}

// forwarded are the headers for the renderer. The tenant is none of them: it changes no token, and may be a secret.
func (s *Service) forwarded(h *kvscoutv1.HttpRequest) http.Header {
	header := make(http.Header, len(h.GetHeaders()))
	for name, value := range h.GetHeaders() {
		if s.opts.TenantHeader != "" && strings.EqualFold(name, s.opts.TenantHeader) {
			continue
		}
		header[name] = []string{value} // as it came: the renderer judges names
	}
	return header
}

func (s *Service) renderInfo(result render.Result) *kvscoutv1.RenderInfo {
	out := &kvscoutv1.RenderInfo{
		Renderer:    s.opts.RendererName,
		Fingerprint: result.Fingerprint,
		Duration:    durationpb.New(result.Duration),
		Cached:      result.Cached,
		Prompts:     indexrpc.Count(len(result.Prompts)),
	}
	if out.Renderer == "" {
		out.Renderer = result.Renderer
	}
	return out
}

func featuresOf(list []render.Feature) []*kvscoutv1.Feature {
	var out []*kvscoutv1.Feature
	for _, f := range list {
		out = append(out, &kvscoutv1.Feature{
			Modality: f.Modality, Hash: f.Hash, Offset: indexrpc.Count(f.Offset), Length: indexrpc.Count(f.Length),
		})
	}
	return out
}
