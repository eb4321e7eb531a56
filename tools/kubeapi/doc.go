// Command kubetestapi is a real Kubernetes API server for tests: etcd and kube-apiserver in one process, on loopback ports
// that the kernel picks. It prints one JSON line when it is ready, and ends on SIGTERM, SIGINT, or when its standard input is
// closed, so it never outlives the test that started it. There is no scheduler, kubelet or controller manager.
package main
