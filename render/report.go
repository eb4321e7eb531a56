package render

// Report is what a renderer tells of itself.
type Report struct {
	// Renderer is as Result has it, and Fingerprint that of the last Result; empty before it.
	Renderer, Fingerprint string
	// Ready says whether it is used now.
	Ready bool
	// Fault is why it is not, or why its files were not loaded anew; nil for nothing.
	Fault error
	// Calls of Render begun, and those that failed, by Reason.
	Calls  uint64
	Errors [ReasonCount]uint64
	// Memory is what a model's files take, in bytes, and Loads how often they were loaded; 0 for a remote renderer.
	Memory int64
	Loads  uint64
	// Cache counts what a Cache before it did.
	Cache CacheStats
}

// Reporter is a Renderer that tells of itself.
type Reporter interface {
	Report() Report
}

var (
	_ Reporter = (*Client)(nil)
	_ Reporter = (*Cache)(nil)
)

// Report tells of the client and its renderer.
func (c *Client) Report() Report {
	s := c.Stats()
	fault := c.Ready()
	out := Report{Renderer: c.name, Ready: fault == nil, Fault: fault, Calls: s.Calls, Errors: s.Errors}
	if print := c.fingerprint.Load(); print != nil {
		out.Fingerprint = *print
	}
	return out
}

// Report tells of the renderer behind, and of the cache.
func (c *Cache) Report() Report {
	out := reportOf(c.next)
	out.Cache = c.Stats()
	return out
}

// reportOf is what r tells of itself; nothing if it does not.
func reportOf(r Renderer) Report {
	if teller, ok := r.(Reporter); ok {
		return teller.Report()
	}
	fault := readyOf(r)
	return Report{Ready: fault == nil, Fault: fault}
}

// Reports tells of each renderer, by model; of that of all others under the empty name.
func (m *Models) Reports() map[string]Report {
	out := make(map[string]Report, len(m.ByModel)+1)
	if m.Other != nil {
		out[""] = reportOf(m.Other)
	}
	for model, r := range m.ByModel {
		out[model] = reportOf(r)
	}
	return out
}
