// Package kubernetes tests discovery, the manifests of deploy/kubernetes and the command against a real kube-apiserver with
// etcd behind it. Its tests have the build tag kubernetes: `make test-kubernetes` builds that server and runs them.
//
// Nothing plays the cluster but the tests: they write the status of pods and the EndpointSlices that a kubelet and a
// controller would write.
package kubernetes
