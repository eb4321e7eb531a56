package render

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

const (
	// maxFeatures bounds the multimodal items of one prompt, each list by itself.
	maxFeatures = 4096
	// maxModalities bounds the kinds of them; maxModality their names, in bytes.
	maxModalities = 16
	maxModality   = 64
	// maxHash bounds a content hash, in bytes. Engines send 64 hex digits, or the uuid that the caller gave.
	maxHash = 1024
)

type place struct {
	offset, length int
}

// features reads {"mm_hashes": {modality: [hash]}, "mm_placeholders": {modality: [{"offset", "length"}]}, ...} or null.
// An object without these two is refused: read as text, its prompt would match prompts with other images.
func (d *decoder) features() ([]Feature, error) {
	if none, err := d.s.null(); none || err != nil {
		return nil, err
	}
	var hashes map[string][]string
	var places map[string][]place
	err := d.s.object(func(key []byte) (err error) {
		switch {
		case string(key) == "mm_hashes" && hashes == nil:
			hashes, err = byModality(d, d.hash)
		case string(key) == "mm_placeholders" && places == nil:
			places, err = byModality(d, d.place)
		case string(key) == "mm_hashes" || string(key) == "mm_placeholders":
			err = contractf("features of prompt %d have two %s", d.index, key)
		default:
			err = d.s.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case hashes == nil || places == nil:
		return nil, contractf("features of prompt %d lack mm_hashes or mm_placeholders", d.index)
	}
	return d.pair(hashes, places)
}

// byModality reads an object of lists, one list per modality. The map is not nil.
func byModality[T any](d *decoder, item func() (T, error)) (map[string][]T, error) {
	lists, total := map[string][]T{}, 0
	err := d.s.object(func(key []byte) error {
		modality := string(key)
		if len(modality) > maxModality || !utf8.ValidString(modality) {
			return contractf("a modality of prompt %d has no usable name", d.index)
		}
		if _, twice := lists[modality]; twice {
			return contractf("features of prompt %d have modality %q twice", d.index, modality)
		}
		if len(lists) == maxModalities {
			return tooLargef("more than %d modalities in prompt %d", maxModalities, d.index)
		}
		lists[modality] = nil
		return d.s.array(func() error {
			if total++; total > maxFeatures {
				return tooLargef("more than %d items in prompt %d", maxFeatures, d.index)
			}
			v, err := item()
			lists[modality] = append(lists[modality], v)
			return err
		})
	})
	return lists, err
}

func (d *decoder) hash() (string, error) {
	text, cut, err := d.s.text(nil, maxHash)
	switch {
	case err != nil:
		return "", err
	case cut:
		return "", tooLargef("a content hash of prompt %d is longer than %d bytes", d.index, maxHash)
	case len(text) == 0 || !utf8.Valid(text):
		return "", contractf("a content hash of prompt %d is empty or no text", d.index)
	}
	return string(text), nil
}

func (d *decoder) place() (place, error) {
	at := map[string]int{}
	err := d.s.object(func(key []byte) error {
		name := string(key)
		if name != "offset" && name != "length" {
			return d.s.skip()
		}
		if _, twice := at[name]; twice {
			return contractf("a placeholder of prompt %d has two %s", d.index, name)
		}
		n, err := d.s.count()
		at[name] = int(n)
		return err
	})
	if err == nil && len(at) != 2 {
		err = contractf("a placeholder of prompt %d lacks offset or length", d.index)
	}
	return place{offset: at["offset"], length: at["length"]}, err
}

// pair makes features of hashes and places, in prompt order.
func (d *decoder) pair(hashes map[string][]string, places map[string][]place) ([]Feature, error) {
	for modality := range places {
		if len(places[modality]) != len(hashes[modality]) {
			return nil, d.unpaired(modality, len(hashes[modality]), len(places[modality]))
		}
	}
	var features []Feature
	for modality, list := range hashes {
		if len(list) != len(places[modality]) {
			return nil, d.unpaired(modality, len(list), len(places[modality]))
		}
		for i, hash := range list {
			at := places[modality][i]
			features = append(features, Feature{Modality: modality, Hash: hash, Offset: at.offset, Length: at.length})
		}
	}
	slices.SortFunc(features, func(a, b Feature) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Length, b.Length),
			cmp.Compare(a.Modality, b.Modality), cmp.Compare(a.Hash, b.Hash))
	})
	return features, nil
}

func (d *decoder) unpaired(modality string, hashes, places int) error {
	return contractf("prompt %d has %d hashes and %d placeholders of modality %q", d.index, hashes, places, modality)
}

// checkPlaces errs unless every feature lies in the prompt's tokens.
func checkPlaces(index int, p Prompt) error {
	for i, f := range p.Features {
		if f.Length < 1 || f.Offset > len(p.Tokens) || f.Length > len(p.Tokens)-f.Offset {
			return contractf("item %d of prompt %d lies outside of its %d tokens", i, index, len(p.Tokens))
		}
	}
	return nil
}
