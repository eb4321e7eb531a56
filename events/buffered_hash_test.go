package events

import (
	"crypto/sha256"
	"testing"
)

// The numbers are TensorRT-LLM's own (tests/unittest/kv_cache_manager_v2_tests, test_..._v1_hash_algo_matches_v1_block_key_hash
// and its siblings), and for the longer child and SHA-256 those of its algorithms computed by Python.
func TestBlockHashes(t *testing.T) {
	first := v1BlockHash(0, tokens(1, 4))
	if first != 924206229973855 {
		t.Errorf("v1 hash of 1..4: %d", first)
	}
	if got := v1BlockHash(first, tokens(5, 6)); got != 6875034662206558884 {
		t.Errorf("v1 hash of 5..6 behind it: %d", got)
	}
	if got := v1BlockHash(first, tokens(5, 8)); got != 2728178455351807326 {
		t.Errorf("v1 hash of 5..8 behind it: %d", got)
	}
	digest := v2BlockHash(sha256.Sum256([]byte{0}), tokens(1, 4))
	if !schemeV2.prove(tokens(1, 4), HashInt(t0)) {
		t.Errorf("v2 hash of 1..4: %x", digest)
	}
	if got := v2BlockHash(digest, tokens(5, 8)); HashBytes(got[:8]) != HashInt(t1) {
		t.Errorf("v2 hash of 5..8 behind it: %x", got)
	}
}

// Rule 3, case 101: once the engine's hashes are understood, one that only an adapter or a salt explains is not the base
// model's. 6280297290684427985 is TensorRT-LLM's own number for tokens 1..4 under salt id 123.
func TestRule3_WitnessOfAHiddenNamespace(t *testing.T) {
	salted := HashInt(6280297290684427985)
	var w witness
	if w.hides(tokens(1, 4), salted) {
		t.Error("a hash is a witness before the scheme is known")
	}
	if w.hides(tokens(1, 4), HashInt(924206229973855)) || w.proved != schemeV1 {
		t.Errorf("the plain hash proves v1: %v", w.proved)
	}
	if !w.hides(tokens(1, 4), salted) {
		t.Error("the salted hash passes for the base model's")
	}
	if w.hides(tokens(1, 4), HashInt(924206229973855)) {
		t.Error("the plain hash is taken for a hidden namespace's")
	}
}
