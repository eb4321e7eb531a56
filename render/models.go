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

// State is how one renderer does.
type State struct {
	// Model is whose renderer it is; empty for that of all others.
	Model string
	// Fault is why it cannot render, nil if it can.
	Fault error
}

// States tells how each renderer does, by model, that of the others first.
func (m *Models) States() []State {
	var out []State
	if m.Other != nil {
		out = append(out, State{Fault: readyOf(m.Other)})
	}
	for _, model := range slices.Sorted(maps.Keys(m.ByModel)) {
		out = append(out, State{Model: model, Fault: readyOf(m.ByModel[model])})
	}
	return out
}

// Ready is nil if every renderer is, else the first fault.
func (m *Models) Ready() error {
	for _, s := range m.States() {
		if s.Fault != nil {
			return s.Fault
		}
	}
	return nil
}
