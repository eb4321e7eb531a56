package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
	"strconv"
)

// index is what / answers.
const index = `kvscout, for operators
/metrics       Prometheus metrics
/healthz       200 while the process answers
/readyz        200 when calls may be sent, else 503; what is waited for, as JSON
/version       version, as JSON
/debug/pprof/  profiles
`

func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, index) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /version", s.version)
	if s.opts.Metrics != nil {
		mux.Handle("GET /metrics", s.opts.Metrics)
	}
	// Without cmdline: flags may hold what is nobody's business (invariant 3).
	mux.HandleFunc("GET /debug/pprof/", bounded(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/profile", bounded(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/trace", bounded(pprof.Trace))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	return mux
}

// bounded refuses profiles that would take longer than maxProfile. The server's WriteTimeout does not: net/http/pprof moves
// that deadline by the seconds it is asked for.
func bounded(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if asked := r.FormValue("seconds"); asked != "" {
			if n, err := strconv.ParseFloat(asked, 64); err != nil || !(n >= 0 && n <= maxProfile.Seconds()) {
				http.Error(w, fmt.Sprintf("seconds is not 0 to %.0f", maxProfile.Seconds()), http.StatusBadRequest)
				return
			}
		}
		profile(w, r)
	}
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	status := Status{State: "starting"}
	if ready := s.ready.Load(); ready != nil {
		status = (*ready)()
	}
	code := http.StatusOK
	if !status.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, status)
}

// build is what /version answers.
type build struct {
	Version string `json:"version"`
	// Revision of the source, and whether it was changed since; empty in builds without version control.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	b := build{Version: s.opts.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, set := range info.Settings {
			switch set.Key {
			case "vcs.revision":
				b.Revision = set.Value
			case "vcs.modified":
				b.Modified = set.Value == "true"
			}
		}
	}
	writeJSON(w, http.StatusOK, b)
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, s)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // a caller that is gone needs no answer
}
