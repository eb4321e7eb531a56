package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kvscout/kvscout/events/discover"
)

const (
	// pageSize is how many objects one list request takes.
	pageSize = 500
	// maxObjects bounds a whole list.
	maxObjects = discover.MaxWorkers
	// listTimeout bounds one page.
	listTimeout = 10 * time.Second
)

// watcher lists and watches one resource for a Reflector, and tells the store of failures.
type watcher struct {
	client   rest.Interface
	o        Options
	selector string
	store    *store

	pages  sync.RWMutex // held for reading by a page under way; guards nothing
	listed int          // objects of the list under way; only the Reflector's one lister touches it
}

// object is one of the resource, for its type.
func (w *watcher) object() runtime.Object {
	if w.o.Resource == EndpointSlices {
		return &discoveryv1.EndpointSlice{}
	}
	return &corev1.Pod{}
}

func (w *watcher) list() runtime.Object {
	if w.o.Resource == EndpointSlices {
		return &discoveryv1.EndpointSliceList{}
	}
	return &corev1.PodList{}
}

// IsWatchListSemanticsUnSupported keeps the Reflector from lists that come as one stream: they cannot be bounded.
func (w *watcher) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (w *watcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (w *watcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext: one page. A first page is of the newest state: the API
// server's cache, which the Reflector would rather be told of, gives no pages.
func (w *watcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	w.pages.RLock()
	defer w.pages.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if o.Continue == "" {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
		w.listed = 0
	}
	page := w.list()
	err := w.request(o).Do(ctx).Into(page)
	if err == nil {
		if w.listed += meta.LenList(page); w.listed > maxObjects {
			err = fmt.Errorf("%w: over %d", discover.ErrTooMany, maxObjects)
		}
	}
	if err != nil {
		if !apierrors.IsResourceExpired(err) || o.Continue == "" { // else the Reflector lists again at once
			w.failed(ctx, "list", err)
		}
		return nil, err
	}
	return page, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (w *watcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	stream, err := w.request(o).Watch(ctx)
	switch {
	case err == nil:
		w.store.recovered()
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err): // the Reflector lists again
	default:
		w.failed(ctx, "watch", err)
	}
	return stream, err
}

func (w *watcher) request(o metav1.ListOptions) *rest.Request {
	o.LabelSelector = w.selector
	return w.client.Get().Namespace(w.o.Namespace).Resource(string(w.o.Resource)).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, corev1.SchemeGroupVersion)
}

// failed tells the store why nothing new is known.
func (w *watcher) failed(ctx context.Context, verb string, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // we are ending
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("the right is missing (the Role needs get, list and watch on %s): %w", w.o.Resource, err)
	}
	w.store.failed(fmt.Errorf("%s %s in namespace %s: %w", verb, w.o.Resource, w.o.Namespace, err))
}

// wait returns when no page is under way: the Reflector does not wait for its lister. A page that begins later finds its
// context ended.
func (w *watcher) wait() {
	w.pages.Lock()
	defer w.pages.Unlock()
}
