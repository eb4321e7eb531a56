package scorerpc

import (
	"context"
	"fmt"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/render"
)

// prompt is a request's prompt, ready to be looked up.
type prompt struct {
	query    indexer.Query
	tokens   int
	features []*kvscoutv1.Feature  // of query, with their modality
	render   *kvscoutv1.RenderInfo // nil if it was not rendered
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
	if req.PromptIndex != nil {
		return prompt{}, indexrpc.Failf(indexrpc.ReasonBadPromptIndex, "prompt_index without http_request")
	}
	_, keying := s.step(ctx, stepKey, false)
	p, err := s.given(req)
	keying.end(err, p.tokens, "prompt_tokens")
	return p, err
}

// given reads a prompt that comes as tokens or keys.
func (s *Service) given(req *kvscoutv1.ScoreRequest) (prompt, error) {
	q, err := indexrpc.ReadPrompt(req, s.opts.MaxPromptTokens)
	if err != nil {
		return prompt{}, err
	}
	q.AdapterID = req.GetAdapterId()
	if err := indexrpc.Resolve(s.fleet, req.GetModel(), &q); err != nil {
		return prompt{}, err
	}
	return prompt{query: q, tokens: q.Length(), features: req.GetFeatures()}, nil
}

// rendered reads what headers and body say of the prompt's namespace, and has the body rendered. What can be refused
// without a renderer is refused before it is asked (rule 15).
func (s *Service) rendered(ctx context.Context, req *kvscoutv1.ScoreRequest) (prompt, error) {
	if err := s.checkHTTP(req); err != nil {
		return prompt{}, err
	}
	said, err := scanBody(req.GetHttpRequest().GetBody())
	if err != nil {
		return prompt{}, err
	}
	p := prompt{query: indexer.Query{Namespace: indexrpc.NamespaceOf(req), AdapterID: req.GetAdapterId()}}
	tenant, err := s.tenant(req.GetHttpRequest())
	if err != nil {
		return prompt{}, err
	}
	if err := mergeSalt(&p.query, tenant, &said); err != nil {
		return prompt{}, err
	}
	if err := s.resolveBody(&p, req.GetModel(), &said); err != nil {
		return prompt{}, err
	}
	own, err := s.callerTokens(req.GetHttpRequest().GetBody(), &said)
	if err != nil {
		return prompt{}, err
	}
	if own != nil && req.GetPromptIndex() != 0 {
		return prompt{}, indexrpc.Failf(indexrpc.ReasonBadPromptIndex, "prompt_index %d of a body of one prompt", req.GetPromptIndex())
	}
	if own != nil {
		p.query.Tokens, p.tokens, p.query.MediaUnnamed = own, len(own), said.media
		return p, nil
	}
	result, err := s.render(ctx, req.GetHttpRequest(), &p, &said)
	if err != nil {
		return prompt{}, err
	}
	_, keying := s.step(ctx, stepKey, false)
	err = s.take(&p, result, req.PromptIndex, said.media)
	keying.end(err, p.tokens, "prompt_tokens")
	return p, err
}

func (s *Service) checkHTTP(req *kvscoutv1.ScoreRequest) error {
	switch {
	case req.GetTokens() != nil || req.GetBlockHashes() != nil:
		return indexrpc.Failf(indexrpc.ReasonTwoPrompts, "http_request is set beside another prompt")
	case len(req.GetFeatures()) > 0:
		return indexrpc.Failf(indexrpc.ReasonBadFeature, "%d features without tokens", len(req.GetFeatures()))
	}
	return s.checkRenderable(req.GetHttpRequest())
}

func (s *Service) checkRenderable(h *kvscoutv1.HttpRequest) error {
	switch {
	case h.GetPath() == "":
		return indexrpc.Failf(indexrpc.ReasonBadPath, "path is empty")
	case len(h.GetBody()) == 0:
		return indexrpc.Failf(indexrpc.ReasonBadBody, "body is empty")
	case s.opts.Renderer == nil:
		return indexrpc.Failf(indexrpc.ReasonNoRenderer, "no renderer is configured for http_request")
	}
	return nil
}

// take puts one of the prompts that were rendered into p.
func (s *Service) take(p *prompt, result render.Result, index *uint32, media bool) error {
	n, at := len(result.Prompts), 0
	switch {
	case index != nil && int64(*index) >= int64(n):
		return indexrpc.Failf(indexrpc.ReasonBadPromptIndex, "prompt_index %d of a body of %d prompts", *index, n)
	case index != nil:
		at = int(*index)
	case n > 1:
		return indexrpc.Failf(indexrpc.ReasonSeveralPrompts, "the body holds %d prompts and prompt_index says none of them", n)
	}
	got := result.Prompts[at]
	p.tokens = len(got.Tokens)
	if err := indexrpc.CheckLength(p.tokens, s.opts.MaxPromptTokens); err != nil {
		return err
	}
	p.query.Tokens = got.Tokens
	for _, f := range got.Features {
		p.query.Features = append(p.query.Features, indexer.Feature{Hash: f.Hash, Offset: f.Offset, Length: f.Length})
	}
	p.features = featuresOf(got.Features)
	p.query.MediaUnnamed = media && len(got.Features) == 0
	p.skipsCache = got.SkipsPrefixCache
	p.render = s.renderInfo(result)
	p.render.PromptIndex = indexrpc.Count(at)
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
