package discover

import (
	"context"
	"fmt"
)

// Describe asks w once, at its URL, for what it does not state, and returns it filled in. It errs with ErrWorker if the URL
// is none, or neither w nor its answer tells what is needed to listen to it; else with ErrAnswer, ErrRefused or what the
// network says.
func (a *Asker) Describe(ctx context.Context, w Worker) (Worker, error) {
	base, host, err := parseBase(w.URL)
	if err != nil {
		return w, err
	}
	answer, err := a.ask(ctx, base, host, engineOf(w))
	if err != nil {
		return w, err
	}
	w = w.fill(*answer)
	if missing := w.finish(); missing != "" {
		return w, fmt.Errorf("%w: %s", ErrWorker, missing)
	}
	return w, nil
}
