//go:build kubernetes

package kubernetes

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// Endpoints come, move between slices, are not ready, terminate and go. One pod is one worker, whatever slices and families
// name it.
func TestSlices(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	a := startAPI(t)
	r := discoverBy(t, bySlices(a.config("")), nil, nil)
	zone := "z1"
	first := endpoint("10.2.0.1", "p1", true, false)
	first.Zone = &zone
	a.createSlice(slice("s1", v4, first, endpoint("10.2.0.2", "p2", false, false)))
	r.waitIDs("10.2.0.1:8000 10.2.0.2:8000")
	want := discover.Worker{
		ID: "10.2.0.1:8000", Role: discover.RolePrefill, Model: "m",
		Labels: map[string]string{
			"kubernetes.io/service-name": "engines", "kvscout.io/role": "prefill", "kvscout.io/engine": "sglang", "kvscout.io/model": "m",
			"kvscout.io/events-port": "5557", "kvscout.io/ask": "false", "kvscout.io/pod": "p1", "topology.kubernetes.io/zone": "z1",
		},
		Sources: []events.Source{{Worker: "10.2.0.1:8000", Engine: "sglang", Model: "m", Events: "tcp://10.2.0.1:5557"}},
	}
	if diff := cmp.Diff(want, r.find("10.2.0.1:8000")); diff != "" {
		t.Error(diff)
	}
	r.wait("no credit of p2", func() bool { return r.ill["10.2.0.2:8000"] != nil && r.ill["10.2.0.1:8000"] == nil })

	// p1 is in two slices, as while the controller moves it, and in one of IPv6.
	a.createSlice(slice("s2", v4, endpoint("10.2.0.1", "p1", true, false), endpoint("10.2.0.3", "p3", true, false)))
	a.createSlice(slice("s3", v6, endpoint("fd00::1", "p1", true, false), endpoint("fd00::4", "p4", true, false)))
	r.waitIDs("10.2.0.1:8000 10.2.0.2:8000 10.2.0.3:8000 [fd00::4]:8000")

	a.putSlice(slice("s1", v4, endpoint("10.2.0.2", "p2", true, false)))
	r.wait("p2 ready", func() bool { return r.ill["10.2.0.2:8000"] == nil })
	a.putSlice(slice("s2", v4, endpoint("10.2.0.1", "p1", true, false), endpoint("10.2.0.3", "p3", false, true)))
	r.waitIDs("10.2.0.1:8000 10.2.0.2:8000 [fd00::4]:8000")
	a.must(http.MethodDelete, slicesPath+"/s2", nil, nil)
	r.waitIDs("10.2.0.2:8000 [fd00::1]:8000 [fd00::4]:8000") // p1 is left at its other address
	a.must(http.MethodDelete, slicesPath+"/s3", nil, nil)
	a.must(http.MethodDelete, slicesPath+"/s1", nil, nil)
	r.waitIDs("")
}
