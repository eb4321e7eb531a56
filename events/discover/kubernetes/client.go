package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
)

// maxPage bounds the answer to one list request in bytes: a page of 500 objects, each of at most some hundred kilobytes.
const maxPage = 64 << 20

// dialTimeout bounds the making of a connection.
const dialTimeout = 10 * time.Second

// errPage is an answer longer than maxPage.
var errPage = errors.New("answer of the API server is too long")

// serviceAccount is where a pod finds its own namespace.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Config says how the API server is reached, and in which namespace by default: by a kubeconfig file and its current
// context, or with "" as the ServiceAccount of the pod that this process runs in.
func Config(kubeconfig string) (config *rest.Config, namespace string, err error) {
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, "", fmt.Errorf("%w: no kubeconfig is given, and this process runs in no pod: %w", ErrOptions, err)
		}
		text, err := os.ReadFile(serviceAccount)
		if err != nil {
			return nil, "", fmt.Errorf("%w: namespace of this pod: %w", ErrOptions, err)
		}
		return config, strings.TrimSpace(string(text)), nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{})
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("%w: kubeconfig: %w", ErrOptions, err)
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", fmt.Errorf("%w: kubeconfig: %w", ErrOptions, err)
	}
	return config, namespace, nil
}

// newClient makes a client of the resource's API group that knows no other kinds. The typed clientset would double the
// binary. Its connections are its own; stop closes them all.
func newClient(base *rest.Config, resource Resource) (client rest.Interface, stop func(), err error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}
	config := rest.CopyConfig(base)
	group, path := corev1.SchemeGroupVersion, "/api"
	if resource == EndpointSlices {
		group, path = discoveryv1.SchemeGroupVersion, "/apis"
	}
	config.GroupVersion, config.APIPath = &group, path
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	config.QPS = -1 // five requests a second would make the pages of a long list wait; failures have a pause of their own
	if config.UserAgent == "" {
		config.UserAgent = "kvscout"
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	conns := connrotation.NewDialer(dial)
	config.Dial = conns.DialContext
	client, err = rest.RESTClientFor(config)
	return client, conns.CloseAll, err
}

// bounded ends answers that are longer than maxPage. Watches, which have no end, are bounded by client-go frame by frame.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "" {
		res.Body = &boundedBody{ReadCloser: res.Body, left: maxPage}
	}
	return res, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: over %d bytes", errPage, maxPage)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
