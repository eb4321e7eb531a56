// Package kubernetes discovers workers from a Kubernetes API server: pods, or the endpoints of EndpointSlices, by a label
// selector in one namespace.
//
// In: lists and watches of one resource, read with client-go under a Role that grants get, list and watch on it
// (deploy/kubernetes). Out: reports to a discover.Reporter, each of all workers there are. A worker's serving port comes from
// its pod or slice, its settings from annotations or labels "kvscout.io/...", and what those leave open from the worker's
// own answers, which package discover asks for.
//
// Invariants:
//
//  1. A report is made of whole knowledge: none is made before the first list is complete, and a list or watch that fails
//     changes nothing but the failure that is told. When it works again, that is told too.
//  2. One address is one worker, however many slices name it; a pod with addresses of both families is one worker, at its
//     first address (pods) or at the IPv4 one (slices).
//  3. A worker goes when its object goes, when it ends or begins to be deleted, or when its address is another's. One that
//     is not ready stays, without credit: what it holds is not lost.
//  4. Settings that cannot be read change nothing: an object's last good ones stay, an object that never had any names no
//     worker. The fault is told, or the first of several and their number.
//  5. An address that the policy refuses is never reported: slices can be written by others than Kubernetes.
//  6. Answers are bounded: a page in bytes, a list in objects, a report in workers.
//  7. When Run returns, no connection of it is left, nor a goroutine that does anything.
//
// Concurrency: a Discoverer runs in one goroutine of its caller and one of client-go's Reflector; they meet in store.
//
// It is not a controller: it writes nothing to the cluster, and needs no right to.
package kubernetes
