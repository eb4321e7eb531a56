package scorerpc

import (
	"strings"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// tenant is the value of the tenant header, blanks around it left out; empty if there is none. It errs with BAD_HEADER if
// spellings of its name say different things.
func (s *Service) tenant(h *kvscoutv1.HttpRequest) (string, error) {
	if s.opts.TenantHeader == "" {
		return "", nil
	}
	tenant := ""
	for name, value := range h.GetHeaders() {
		value = strings.TrimSpace(value)
		if !strings.EqualFold(name, s.opts.TenantHeader) || value == "" {
			continue
		}
		if tenant != "" && tenant != value {
			return "", indexrpc.Failf(indexrpc.ReasonBadHeader, "%s is given twice, with different values", s.opts.TenantHeader)
		}
		tenant = value
	}
	return tenant, nil
}

// mergeSalt finds the cache salt. What the gateway says of the tenant goes before what the caller of the gateway says:
// the tenant header, nvext.cache_salt, cache_salt; the first that is not empty counts (Dynamo's picker.rs has the same
// order). The request's own field says how the gateway decided, so it may be left out but must agree.
func mergeSalt(q *indexer.Query, tenant string, said *bodyFacts) error {
	salt := tenant
	for _, other := range []string{said.extensionSalt, said.salt} {
		if salt == "" {
			salt = other
		}
	}
	switch {
	case q.Salt == "":
		q.Salt = salt
	case salt != "" && salt != q.Salt:
		return indexrpc.Failf(indexrpc.ReasonSaltMismatch, "cache_salt of the request differs from that of its tenant or body")
	}
	return nil
}

// resolveBody finds the model. The engine obeys the body, so where that names an adapter of the request's model, it
// counts; where it names something else, the answer says what was taken.
func (s *Service) resolveBody(p *prompt, asked string, said *bodyFacts) error {
	if err := s.resolveNames(p, asked, said.model); err != nil {
		return err
	}
	if !s.fleet.HasEngine(p.query.Model, events.EngineSGLang) {
		return nil // to other engines these fields mean nothing
	}
	if said.odd != "" {
		return badBody(said.odd + " is no text: one prompt has one namespace")
	}
	if p.query.Adapter == "" {
		p.query.Adapter = said.adapter
	}
	switch {
	case p.query.Extra == "":
		p.query.Extra = said.extraKey
	case said.extraKey != "" && said.extraKey != p.query.Extra:
		return indexrpc.Failf(indexrpc.ReasonSaltMismatch, "extra_key of the request and of its body differ")
	}
	return nil
}

func (s *Service) resolveNames(p *prompt, asked, body string) error {
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
