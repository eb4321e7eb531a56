package kubernetes

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// errPort is a serving port that an object does not have.
var errPort = errors.New("no serving port")

// translator makes workers of objects.
type translator struct {
	port, id string
	policy   discover.Policy
}

// translate makes the workers of an object, given what it said before.
func (t translator) translate(o metav1.Object, old entry) entry {
	e := entry{uid: o.GetUID()}
	s, err := readSettings(o.GetAnnotations(), o.GetLabels())
	switch {
	case err == nil:
		e.settings = &s
	case old.uid == e.uid:
		e.settings = old.settings // invariant 4
	}
	faults := []error{err}
	if e.settings != nil {
		switch o := o.(type) {
		case *corev1.Pod:
			err = t.pod(o, &e)
		case *discoveryv1.EndpointSlice:
			err = t.slice(o, &e)
		}
		faults = append(faults, err)
	}
	e.fault = errors.Join(faults...)
	return e
}

// pod adds the worker of a pod, unless it has no address yet, has ended or is about to.
func (t translator) pod(p *corev1.Pod, e *entry) error {
	if p.DeletionTimestamp != nil || p.Status.PodIP == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil
	}
	var ports []port
	for _, c := range p.Spec.Containers {
		for _, cp := range c.Ports {
			ports = append(ports, port{cp.Name, cp.ContainerPort, cp.Protocol})
		}
	}
	for _, c := range p.Spec.InitContainers { // sidecars: they run beside the engine and may serve for it
		for _, cp := range c.Ports {
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				ports = append(ports, port{cp.Name, cp.ContainerPort, cp.Protocol})
			}
		}
	}
	number, err := t.choose(*e.settings, ports)
	if err != nil {
		return err
	}
	unready := "pod is not ready"
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			unready = ""
		}
	}
	return t.add(e, place{address: p.Status.PodIP, port: number, pod: p.Name, uid: p.UID, labels: p.Labels, unready: unready})
}

// slice adds the workers of a slice's endpoints, but for those that are terminating.
func (t translator) slice(s *discoveryv1.EndpointSlice, e *entry) error {
	if s.AddressType != discoveryv1.AddressTypeIPv4 && s.AddressType != discoveryv1.AddressTypeIPv6 {
		return fmt.Errorf("address type %.20q is not IPv4 or IPv6", s.AddressType)
	}
	var ports []port
	for _, p := range s.Ports {
		ep := port{protocol: corev1.ProtocolTCP}
		if p.Name != nil {
			ep.name = *p.Name
		}
		if p.Protocol != nil {
			ep.protocol = *p.Protocol
		}
		if p.Port != nil {
			ep.number = *p.Port
			ports = append(ports, ep)
		}
	}
	if len(s.Endpoints) == 0 {
		return nil
	}
	number, err := t.choose(*e.settings, ports)
	if err != nil {
		return err
	}
	var faults []error
	for i := range s.Endpoints {
		if p, ok := placeOf(s, &s.Endpoints[i]); ok {
			p.port = number
			faults = append(faults, t.add(e, p))
		}
	}
	return errors.Join(faults...)
}

// placeOf is where an endpoint is. Only its first address counts, as the API says.
func placeOf(s *discoveryv1.EndpointSlice, ep *discoveryv1.Endpoint) (p place, ok bool) {
	if isTrue(ep.Conditions.Terminating, false) || len(ep.Addresses) == 0 {
		return place{}, false
	}
	p = place{address: ep.Addresses[0], labels: s.Labels, zone: ep.Zone}
	if ref := ep.TargetRef; ref != nil && ref.Kind == "Pod" {
		p.pod, p.uid = ref.Name, ref.UID
	}
	if !isTrue(ep.Conditions.Ready, true) {
		p.unready = "endpoint is not ready"
	}
	return p, true
}

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

// place is where a worker is.
type place struct {
	address string
	port    uint16
	pod     string    // its pod's name, "" if that is not known
	uid     types.UID // of the pod
	labels  map[string]string
	zone    *string
	unready string
}

// add adds the worker at a place.
func (t translator) add(e *entry, p place) error {
	addr, err := netip.ParseAddr(p.address)
	if err != nil {
		return fmt.Errorf("address %.100q: %w", p.address, err)
	}
	if err := t.policy.Check(addr); err != nil {
		return err
	}
	host := addr.Unmap().String()
	serving := net.JoinHostPort(host, strconv.Itoa(int(p.port)))
	w := discover.Worker{
		ID: serving, Role: e.settings.role, Model: e.settings.model, Aliases: e.settings.aliases,
		Fingerprint: e.settings.fingerprint, Labels: p.allLabels(), Unready: p.unready,
	}
	if t.id == IDName {
		if w.ID = p.pod; w.ID == "" {
			return fmt.Errorf("endpoint %s has no pod to be named by", serving)
		}
	}
	if e.settings.ask {
		w.URL = "http://" + serving
	}
	if w.Sources, err = e.settings.sources(w.ID, host); err != nil {
		return err
	}
	e.workers = append(e.workers, found{worker: w, pod: p.uid, ipv6: addr.Unmap().Is6()})
	return nil
}

// Labels that a worker has besides those of its object.
const (
	labelPod  = "kvscout.io/pod"
	labelZone = "topology.kubernetes.io/zone"
)

func (p place) allLabels() map[string]string {
	all := make(map[string]string, len(p.labels)+2)
	maps.Copy(all, p.labels)
	if p.pod != "" {
		all[labelPod] = p.pod
	}
	if p.zone != nil {
		all[labelZone] = *p.zone
	}
	return all
}

// port is one port of an object.
type port struct {
	name     string
	number   int32
	protocol corev1.Protocol
}

// choose finds the serving port: by number, by name, or the only one.
func (t translator) choose(s settings, ports []port) (uint16, error) {
	want := t.port
	if s.port != "" {
		want = s.port
	}
	number, name, err := parsePort(want)
	if err != nil || name == "" {
		return number, err
	}
	var tcp []port
	for _, p := range ports {
		if p.protocol == corev1.ProtocolTCP || p.protocol == "" {
			tcp = append(tcp, p)
		}
	}
	for _, p := range tcp {
		if p.name == name {
			return checkPort(p.number)
		}
	}
	if len(tcp) == 1 && s.port == "" {
		return checkPort(tcp[0].number)
	}
	return 0, fmt.Errorf("%w: none of its %d TCP ports is named %q", errPort, len(tcp), name)
}

func checkPort(n int32) (uint16, error) {
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("%w: %d is no port", errPort, n)
	}
	return uint16(n), nil
}

// engineOrAny is for checks of a source whose engine is still to be told.
func engineOrAny(e events.Engine) events.Engine {
	if e == "" {
		return events.EngineVLLM
	}
	return e
}
