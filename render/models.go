package render

import (
	"context"
	"maps"
	"slices"
)

// Models chooses the renderer of a request by its model. It must not be changed once it is used.
type Models struct {
	// ByModel are the renderers of models by name.
	ByModel map[string]Renderer
	// Other renders for every model that has none of its own; nil refuses those with ErrNoRenderer.
	Other Renderer
}

var _ Renderer = (*Models)(nil)

// Render has the model's renderer render.
func (m *Models) Render(ctx context.Context, req Request) (Result, error) {
	r, ok := m.ByModel[req.Model]
	if !ok {
		r = m.Other
	}
	if r == nil {
		return Result{}, failf(ReasonNoRenderer, "model %.100q", req.Model)
	}
	return r.Render(ctx, req)
}

// Serves says whether requests for the model have a renderer.
func (m *Models) Serves(model string) bool {
	_, ok := m.ByModel[model]
	return ok || m.Other != nil
}

// Ready is nil if every renderer is, else the first fault.
func (m *Models) Ready() error {
	if m.Other != nil {
		if err := readyOf(m.Other); err != nil {
			return err
		}
	}
	for _, model := range slices.Sorted(maps.Keys(m.ByModel)) {
		if err := readyOf(m.ByModel[model]); err != nil {
			return err
		}
	}
	return nil
}
