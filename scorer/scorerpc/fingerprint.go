package scorerpc

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// checkFingerprints errs with FINGERPRINT_MISMATCH if a worker to be rated turns requests into tokens otherwise than the
// renderer does, unless such workers are only to be flagged.
func (s *Service) checkFingerprints(c *choice, renderer string) error {
	if s.opts.FlagFingerprints || len(c.differing) == 0 {
		return nil
	}
	return indexrpc.Failf(indexrpc.ReasonFingerprintMismatch, "the renderer states fingerprint %.100q, another than %s",
		renderer, few(slices.Sorted(maps.Keys(c.differing))))
}

// rendersOtherwise says whether the worker states another fingerprint than the renderer. Those of different schemes
// (what stands before a colon) cannot be compared.
func rendersOtherwise(w ingest.Worker, renderer string) bool {
	return w.Fingerprint != "" && renderer != "" && w.Fingerprint != renderer && schemeOf(w.Fingerprint) == schemeOf(renderer)
}

func schemeOf(fingerprint string) string {
	scheme, _, found := strings.Cut(fingerprint, ":")
	if !found {
		return ""
	}
	return scheme
}
