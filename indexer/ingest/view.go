package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/events"
)

// ErrUnknownModel is a model that no worker serves.
var ErrUnknownModel = errors.New("unknown model")

// ErrModelRequired is a request without a model where not exactly one is known.
var ErrModelRequired = errors.New("model required")

// view is the fleet as lookups see it. It is made anew whenever a worker comes or goes.
type view struct {
	workers []Worker          // by id
	byID    map[string]int    // into workers
	models  map[string]string // served name or alias -> model
	// adapters finds the model of an adapter that workers say they serve; "" if several models have one of that name.
	adapters map[string]string
	served   []string        // models, sorted
	unsalt   map[string]bool // models of which every source's engine publishes no salt
	engines  map[modelEngine]bool
}

// modelEngine is a model with an engine that serves it.
type modelEngine struct {
	model  string
	engine events.Engine
}

func (f *Fleet) publishLocked() {
	v := &view{
		byID: make(map[string]int), models: make(map[string]string), adapters: make(map[string]string),
		unsalt: make(map[string]bool), engines: make(map[modelEngine]bool),
	}
	for _, m := range f.workers {
		v.workers = append(v.workers, m.Worker)
	}
	slices.SortFunc(v.workers, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	for i, w := range v.workers {
		v.byID[w.ID] = i
		for _, s := range w.Sources {
			v.engines[modelEngine{w.Model, s.Engine}] = true
			if all, seen := v.unsalt[w.Model]; !seen || all {
				v.unsalt[w.Model] = !PublishesSalts(s)
			}
		}
		for _, name := range w.Aliases {
			v.models[name] = w.Model
		}
		for _, name := range w.Adapters {
			if model, ok := v.adapters[name]; ok && model != w.Model {
				v.adapters[name] = ""
			} else {
				v.adapters[name] = w.Model
			}
		}
	}
	// A served name beats another model's alias.
	for _, w := range v.workers {
		v.models[w.Model] = w.Model
		v.served = append(v.served, w.Model)
	}
	slices.Sort(v.served)
	v.served = slices.Compact(v.served)
	f.view.Store(v)
	f.shareLocked(v.workers)
}

// Workers lists the fleet by id. The slice and what it holds must not be changed.
func (f *Fleet) Workers() []Worker { return f.view.Load().workers }

// Worker finds a worker by id.
func (f *Fleet) Worker(id string) (Worker, bool) {
	v := f.view.Load()
	i, ok := v.byID[id]
	if !ok {
		return Worker{}, false
	}
	return v.workers[i], true
}

// Resolve finds the model that a request means: a served name, an alias, or the name of an adapter that a worker says it
// serves or of which blocks are held, which is then returned too. An empty name means the only model there is. It errs with ErrModelRequired or
// ErrUnknownModel.
func (f *Fleet) Resolve(name string) (model, adapter string, err error) {
	v := f.view.Load()
	if name == "" {
		if len(v.served) == 1 {
			return v.served[0], "", nil
		}
		return "", "", fmt.Errorf("%w: %d models are known", ErrModelRequired, len(v.served))
	}
	if model, ok := v.models[name]; ok {
		return model, "", nil
	}
	if model := v.adapters[name]; model != "" {
		return model, name, nil
	}
	if model, ok := f.index.AdapterModel(name); ok {
		return model, name, nil
	}
	return "", "", fmt.Errorf("%w: %q", ErrUnknownModel, name)
}

// PublishesSalts says whether the events of the source's engine tell salted blocks from others (rule 15). TensorRT-LLM's
// do not, nor those of SGLang before 0.5.19 (sgl-project/sglang#30827). Where no version is stated it is a current one.
func PublishesSalts(src events.Source) bool {
	if src.Engine != events.EngineSGLang {
		return src.Engine != events.EngineTRTLLM
	}
	var major, minor, patch int
	n, _ := fmt.Sscanf(strings.TrimPrefix(src.Version, "v"), "%d.%d.%d", &major, &minor, &patch)
	old := cmp.Or(cmp.Compare(major, 0), cmp.Compare(minor, 5), cmp.Compare(patch, 19)) < 0
	return n < 3 || !old
}

// SaltSupported says whether any engine that serves the model publishes cache salts (rule 15).
func (f *Fleet) SaltSupported(model string) bool { return !f.view.Load().unsalt[model] }

// HasEngine says whether an engine of that kind serves the model.
func (f *Fleet) HasEngine(model string, engine events.Engine) bool {
	return f.view.Load().engines[modelEngine{model, engine}]
}
