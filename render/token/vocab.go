package token

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// vocab maps words to ids. It is one block of text and one table, so the garbage collector has nothing to scan.
// It is filled first and only read afterwards.
type vocab struct {
	seed  maphash.Seed
	text  []byte
	ends  []uint32 // where word i ends in text; it begins where word i-1 ends
	ids   []uint32
	table []uint32 // word index + 1 by hash, open addressing; 0 is free
}

// newVocab makes room for n words, which must not be exceeded.
func newVocab(n int) *vocab {
	return &vocab{seed: maphash.MakeSeed(), table: make([]uint32, 1<<bits.Len(uint(2*n)))}
}

// fit gives back what was allocated for more.
func (v *vocab) fit() {
	v.text, v.ends, v.ids = slices.Clip(slices.Clone(v.text)), slices.Clip(slices.Clone(v.ends)), slices.Clip(slices.Clone(v.ids))
}

// slot is where word is or would be in the table.
func (v *vocab) slot(word string) *uint32 {
	mask := uint64(len(v.table) - 1)
	for h := maphash.String(v.seed, word) & mask; ; h = (h + 1) & mask {
		e := &v.table[h]
		if *e == 0 {
			return e
		}
		begin, end := uint32(0), v.ends[*e-1]
		if *e > 1 {
			begin = v.ends[*e-2]
		}
		if string(v.text[begin:end]) == word {
			return e
		}
	}
}

// put sets the id of word. The last one counts, as in a JSON object.
func (v *vocab) put(word string, id uint32) {
	e := v.slot(word)
	if *e != 0 {
		v.ids[*e-1] = id
		return
	}
	v.text = append(v.text, word...)
	v.ends = append(v.ends, uint32(len(v.text)))
	v.ids = append(v.ids, id)
	*e = uint32(len(v.ids))
}

func (v *vocab) get(word string) (id uint32, ok bool) {
	e := *v.slot(word)
	if e == 0 {
		return 0, false
	}
	return v.ids[e-1], true
}

func (v *vocab) len() int { return len(v.ids) }

func (v *vocab) size() int64 {
	return int64(cap(v.text)) + 4*int64(cap(v.ends)+cap(v.ids)+len(v.table))
}

// at is word i, in the order they were put.
func (v *vocab) at(i int) string {
	begin := uint32(0)
	if i > 0 {
		begin = v.ends[i-1]
	}
	return string(v.text[begin:v.ends[i]])
}
