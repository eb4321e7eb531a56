package scorerpc

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/render"
)

// prompt is a request's prompt, ready to be looked up.
type prompt struct {
	query  indexer.Query
	tokens int
	render *kvscoutv1.RenderInfo // nil if it was not rendered
	// skipsCache: the engine will not read its cache for this request.
	skipsCache bool
	// otherModel is the model that the body names where the request names another; else empty.
	otherModel string
}

// prompt reads the prompt in whichever form it comes.
func (s *Service) prompt(ctx context.Context, req *kvscoutv1.ScoreRequest) (prompt, error) {
	if req.GetHttpRequest() != nil {
		return s.rendered(ctx, req)
	}
	q, err := indexrpc.ReadPrompt(req, s.opts.MaxPromptTokens)
	if err != nil {
		return prompt{}, err
	}
	q.AdapterID = req.GetAdapterId()
	if err := indexrpc.Resolve(s.fleet, req.GetModel(), &q); err != nil {
		return prompt{}, err
	}
	return prompt{query: q, tokens: q.Length()}, nil
}

// rendered reads what the body says of its namespace, and has it rendered. What can be refused without a renderer is
// refused before it is asked (rule 15).
func (s *Service) rendered(ctx context.Context, req *kvscoutv1.ScoreRequest) (prompt, error) {
	if err := s.checkHTTP(req); err != nil {
		return prompt{}, err
	}
	said, err := scanBody(req.GetHttpRequest().GetBody())
	if err != nil {
		return prompt{}, err
	}
	p := prompt{query: indexer.Query{Namespace: indexrpc.NamespaceOf(req), AdapterID: req.GetAdapterId()}}
	if err := mergeSalt(&p.query, said.salt); err != nil {
		return prompt{}, err
	}
	if err := s.resolveBody(&p, req.GetModel(), said.model); err != nil {
		return prompt{}, err
	}
	if err := ctx.Err(); err != nil {
		return prompt{}, err
	}
	result, err := s.opts.Renderer.Render(ctx, renderRequest(req.GetHttpRequest()))
	if err != nil {
		return prompt{}, err
	}
	err = s.take(&p, result, said.media)
	return p, err
}

func (s *Service) checkHTTP(req *kvscoutv1.ScoreRequest) error {
	h := req.GetHttpRequest()
	switch {
	case req.GetTokens() != nil || req.GetBlockHashes() != nil:
		return indexrpc.Failf(indexrpc.ReasonTwoPrompts, "http_request is set beside another prompt")
	case len(req.GetFeatures()) > 0:
		return indexrpc.Failf(indexrpc.ReasonBadFeature, "%d features without tokens", len(req.GetFeatures()))
	case h.GetPath() == "":
		return indexrpc.Failf(indexrpc.ReasonBadPath, "path is empty")
	case len(h.GetBody()) == 0:
		return indexrpc.Failf(indexrpc.ReasonBadBody, "body is empty")
	case s.opts.Renderer == nil:
		return indexrpc.Failf(indexrpc.ReasonNoRenderer, "no renderer is configured for http_request")
	}
	return nil
}

// mergeSalt joins the salt of the request and of its body: either may be left out, two must agree.
func mergeSalt(q *indexer.Query, body string) error {
	switch {
	case q.Salt == "":
		q.Salt = body
	case body != "" && body != q.Salt:
		return indexrpc.Failf(indexrpc.ReasonSaltMismatch, "cache_salt of the request and of its body differ")
	}
	return nil
}

// resolveBody finds the model. The engine obeys the body, so where that names an adapter of the request's model, it
// counts; where it names something else, the answer says what was taken.
func (s *Service) resolveBody(p *prompt, asked, body string) error {
	if asked == "" || body == "" || asked == body {
		if asked == "" {
			asked = body
		}
		return indexrpc.Resolve(s.fleet, asked, &p.query)
	}
	named := p.query.Adapter // by the request's own field
	if err := indexrpc.Resolve(s.fleet, asked, &p.query); err != nil {
		return err
	}
	inner := indexer.Query{}
	switch err := indexrpc.Resolve(s.fleet, body, &inner); {
	case body == named:
		return nil
	case s.index.HoldsAdapter(p.query.Model, body): // of several models, perhaps
		inner.Adapter = body
	case err != nil || inner.Model != p.query.Model:
		p.otherModel = body
		return nil
	}
	switch named {
	case "":
		p.query.Adapter = inner.Adapter
	case inner.Adapter:
	default:
		p.otherModel = body
	}
	return nil
}

func renderRequest(h *kvscoutv1.HttpRequest) render.Request {
	header := make(http.Header, len(h.GetHeaders()))
	for name, value := range h.GetHeaders() {
		header[name] = []string{value} // as it came: the renderer judges names
	}
	return render.Request{Path: h.GetPath(), Body: h.GetBody(), Header: header}
}

// take puts what was rendered into p.
func (s *Service) take(p *prompt, result render.Result, media bool) error {
	if len(result.Prompts) > 1 {
		return indexrpc.Failf(indexrpc.ReasonSeveralPrompts, "the body holds %d prompts, want 1", len(result.Prompts))
	}
	if len(result.Prompts) == 0 || len(result.Prompts[0].Tokens) == 0 {
		return indexrpc.Failf(indexrpc.ReasonRendererUnusable, "renderer answered without tokens") // rule 14
	}
	got := result.Prompts[0]
	p.tokens = len(got.Tokens)
	if err := indexrpc.CheckLength(p.tokens, s.opts.MaxPromptTokens); err != nil {
		return err
	}
	p.query.Tokens = got.Tokens
	for _, f := range got.Features {
		p.query.Features = append(p.query.Features, indexer.Feature{Hash: f.Hash, Offset: f.Offset, Length: f.Length})
	}
	p.query.MediaUnnamed = media && len(got.Features) == 0
	p.skipsCache = got.SkipsPrefixCache
	p.render = &kvscoutv1.RenderInfo{
		Renderer:    s.opts.RendererName,
		Fingerprint: result.Fingerprint,
		Duration:    durationpb.New(result.Duration),
	}
	if p.render.Renderer == "" {
		p.render.Renderer = result.Renderer
	}
	return nil
}

// warnings say what of the prompt the caller should know.
func (p *prompt) warnings() []string {
	var out []string
	if p.otherModel != "" {
		out = append(out, fmt.Sprintf("the body names model %.100q; scored as model %q, adapter %q", p.otherModel, p.query.Model, p.query.Adapter))
	}
	if p.skipsCache {
		out = append(out, "the engine does not read its prefix cache for this request: reusable tokens and scores are 0")
	}
	return out
}
