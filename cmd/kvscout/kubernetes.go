package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/discover/kubernetes"
)

// kubernetesOptions are the settings of discovery by a Kubernetes API server.
type kubernetesOptions struct {
	pods, slices                          string
	namespace, port, workerID, kubeconfig string
}

func (k *kubernetesOptions) register(f *pflag.FlagSet) {
	f.StringVar(&k.pods, "kubernetes-pods", "", "label `SELECTOR` of pods that are workers, as app=vllm (default: none)")
	f.StringVar(&k.slices, "kubernetes-endpoint-slices", "", "label `SELECTOR` of EndpointSlices whose endpoints are workers, as kubernetes.io/service-name=vllm (default: none)")
	f.StringVar(&k.namespace, "kubernetes-namespace", "", "`NAMESPACE` of the workers (default: the one this server runs in)")
	f.StringVar(&k.port, "kubernetes-port", kubernetes.DefaultPort, "`PORT` of a worker's HTTP server, by name or number; an object with one port only means that")
	f.StringVar(&k.workerID, "kubernetes-worker-id", kubernetes.IDAddress, "what a worker's `ID` is: address (ADDRESS:PORT) or name (of its pod)")
	f.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` by which the API server is reached (default: as the ServiceAccount of this pod)")
}

// used says whether workers are discovered so.
func (k *kubernetesOptions) used() bool { return k.pods != "" || k.slices != "" }

// discoverers are those of the selectors given.
func (k *kubernetesOptions) discoverers(policy discover.Policy) ([]discover.Discoverer, error) {
	if !k.used() {
		return nil, nil
	}
	config, namespace, err := kubernetes.Config(k.kubeconfig)
	if err != nil {
		return nil, err
	}
	if k.namespace != "" {
		namespace = k.namespace
	}
	var out []discover.Discoverer
	var faults []error
	for _, by := range []struct {
		flag, selector string
		resource       kubernetes.Resource
	}{
		{"kubernetes-pods", k.pods, kubernetes.Pods},
		{"kubernetes-endpoint-slices", k.slices, kubernetes.EndpointSlices},
	} {
		if by.selector == "" {
			continue
		}
		d, err := kubernetes.New(kubernetes.Options{
			Config: config, Namespace: namespace, Resource: by.resource, Selector: by.selector, Port: k.port, ID: k.workerID, Policy: policy,
		})
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", by.flag, err))
			continue
		}
		out = append(out, d)
	}
	return out, errors.Join(faults...)
}
