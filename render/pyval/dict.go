package pyval

import "fmt"

// indexFrom is the size from which a Dict keeps a map beside its entries; below it a scan is faster.
const indexFrom = 12

// Entry is one item of a Dict.
type Entry struct {
	Key, Value Value
}

// Dict is a Python dict: items in insertion order. The zero Dict is empty and ready.
type Dict struct {
	entries []Entry
	index   map[string]int // place of each string key; nil while there are few entries
}

// NewDict makes a Dict of string keys and values in turn: k, v, k, v.
func NewDict(pairs ...Value) *Dict {
	d := &Dict{entries: make([]Entry, 0, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.set(pairs[i], pairs[i+1])
	}
	return d
}

// Len is the number of items.
func (d *Dict) Len() int { return len(d.entries) }

// Entries are the items in order. The caller must not change them.
func (d *Dict) Entries() []Entry { return d.entries }

// Get finds the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.find(key); i >= 0 {
		return d.entries[i].Value, true
	}
	return nil, false
}

// Lookup finds the value of any key. It errs with ErrType if a key of that type cannot be hashed.
func (d *Dict) Lookup(key Value) (Value, bool, error) {
	i, err := d.place(key)
	if err != nil || i < 0 {
		return nil, false, err
	}
	return d.entries[i].Value, true, nil
}

// Set puts a value at a string key.
func (d *Dict) Set(key string, v Value) { d.set(key, v) }

// SetAny puts a value at any key. It errs with ErrType if a key of that type cannot be hashed.
func (d *Dict) SetAny(key, v Value) error {
	if err := Hashable(key); err != nil {
		return err
	}
	d.set(key, v)
	return nil
}

// Delete takes out a string key, if it is there.
func (d *Dict) Delete(key string) {
	i := d.find(key)
	if i < 0 {
		return
	}
	d.entries = append(d.entries[:i:i], d.entries[i+1:]...)
	d.index = nil
	if len(d.entries) >= indexFrom {
		d.reindex()
	}
}

// Copy is a shallow copy.
func (d *Dict) Copy() *Dict {
	c := &Dict{entries: append([]Entry(nil), d.entries...)}
	if len(c.entries) >= indexFrom {
		c.reindex()
	}
	return c
}

func (d *Dict) set(key, v Value) {
	i, err := d.place(key)
	if err == nil && i >= 0 {
		d.entries[i].Value = v
		return
	}
	d.entries = append(d.entries, Entry{key, v})
	switch s, ok := key.(string); {
	case d.index == nil:
		if len(d.entries) >= indexFrom {
			d.reindex()
		}
	case ok:
		d.index[s] = len(d.entries) - 1
	}
}

func (d *Dict) reindex() {
	d.index = make(map[string]int, 2*len(d.entries))
	for i, e := range d.entries {
		if s, ok := e.Key.(string); ok {
			d.index[s] = i
		}
	}
}

func (d *Dict) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if s, ok := d.entries[i].Key.(string); ok && s == key {
			return i
		}
	}
	return -1
}

func (d *Dict) place(key Value) (int, error) {
	if s, ok := key.(string); ok {
		return d.find(s), nil
	}
	if err := Hashable(key); err != nil {
		return -1, err
	}
	for i := range d.entries {
		if _, ok := d.entries[i].Key.(string); ok {
			continue
		}
		if same, _, err := Equal(d.entries[i].Key, key); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// Hashable errs with ErrType if Python cannot hash v, and with ErrTooBig.
func Hashable(v Value) error {
	left := 1 << 16 // so that Equal of two keys never comes to its own bound
	return hashable(v, &left)
}

func hashable(v Value, left *int) error {
	if *left--; *left < 0 {
		return ErrTooBig
	}
	switch v := v.(type) {
	case *List, *Dict:
		return fmt.Errorf("%w: unhashable type: '%s'", ErrType, TypeName(v))
	case *Tuple:
		for _, item := range v.Items {
			if err := hashable(item, left); err != nil {
				return err
			}
		}
	}
	return nil
}
