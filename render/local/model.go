package local

import (
	"context"
	"errors"

	"github.com/kvscout/kvscout/render"
)

// model is what the files of a directory become.
type model struct {
	timed bool  // the template prints the time
	size  int64 // bytes in memory
}

func newModel(files, *Options) (*model, error) { return nil, errors.New("not yet") }

func (m *model) render(context.Context, render.Request, *Options) ([]render.Prompt, error) {
	return nil, errors.New("not yet")
}
