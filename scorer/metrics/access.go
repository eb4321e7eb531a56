package metrics

import kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"

var (
	accessRefused     = counter("access_refused_total", "Calls refused before they were read, by reason.", "reason")
	accessCalls       = gauge("access_calls", "Calls under way, streams included.")
	accessMaxCalls    = gauge("access_calls_max", "How many calls of routers may be under way, and so many others beside them; 0 is no bound.")
	accessCallers     = gauge("access_callers", "Callers whose calls are counted apart.")
	accessConnections = gauge("access_connections", "Connections of callers.")
	accessTurnedAway  = counter("access_refused_connections_total", "Connections closed at once because there were too many.")
	accessHandshakes  = counter("access_failed_handshakes_total", "Connections whose TLS handshake failed.")
	accessLoads       = counter("access_file_loads_total", "Times that a file of keys or callers was read and used.", "file")
	accessFailures    = counter("access_file_failures_total", "Times that a file of keys or callers was wrong and changed nothing.", "file")
	accessCertificate = gauge("access_certificate_seconds", "Seconds until the server's certificate expires, negative when it has; absent without one.")
)

func (t telling) access(a *kvscoutv1.AccessStats) {
	if a == nil {
		return
	}
	for reason, n := range a.GetRefused() {
		t.count(accessRefused, n, reason)
	}
	t.count(accessCalls, a.GetCalls())
	t.count(accessMaxCalls, a.GetMaxCalls())
	t.count(accessCallers, uint64(a.GetCallers()))
	t.count(accessConnections, a.GetConnections())
	t.count(accessTurnedAway, a.GetRefusedConnections())
	t.count(accessHandshakes, a.GetFailedHandshakes())
	for _, f := range a.GetFiles() {
		t.count(accessLoads, f.GetLoads(), f.GetName())
		t.count(accessFailures, f.GetFailures(), f.GetName())
	}
	if left := a.GetCertificateLeft(); left != nil {
		t.value(accessCertificate, left.AsDuration().Seconds())
	}
}
