package events

import (
	"slices"
)

// readRows reads a list that has one entry for each block, nil or what row reads. Lists of one event are joined block
// by block: no key that an engine announced is dropped.
func (d *Decoder) readRows(e *Event, row func(*Decoder) error) error {
	if d.r.next() == classNil {
		return d.r.skip()
	}
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	if n > d.limits.Hashes-len(d.rows) {
		return fault(ReasonTooLarge)
	}
	first, items := len(d.rows), len(d.extras)
	d.rows = slices.Grow(d.rows, n)
	for range n {
		start := len(d.extras)
		if d.r.next() == classNil {
			err = d.r.skip()
		} else {
			err = row(d)
		}
		if err != nil {
			return err
		}
		d.rows = append(d.rows, d.extrasFrom(start))
	}
	if len(d.extras) == items { // nothing in any block
		d.rows = d.rows[:first]
		return nil
	}
	rows := d.rows[first:len(d.rows):len(d.rows)]
	if e.Extras == nil {
		e.Extras = rows
		return nil
	}
	return d.join(e.Extras, rows)
}

// extrasFrom is the items read since start, nil without any.
func (d *Decoder) extrasFrom(start int) []Extra {
	if len(d.extras) == start {
		return nil
	}
	return d.extras[start:len(d.extras):len(d.extras)]
}

// join puts the items of more behind those of rows, block by block.
func (d *Decoder) join(rows, more [][]Extra) error {
	if len(rows) != len(more) {
		return fault(ReasonBadNamespace)
	}
	for i, row := range more {
		if len(rows[i]) == 0 {
			rows[i] = row
			continue
		}
		start := len(d.extras)
		for _, part := range [...][]Extra{rows[i], row} {
			for _, x := range part {
				if err := d.addExtra(x); err != nil {
					return err
				}
			}
		}
		rows[i] = d.extrasFrom(start)
	}
	return nil
}

func (d *Decoder) addExtra(x Extra) error {
	if len(d.extras) >= d.limits.Extras {
		return fault(ReasonTooLarge)
	}
	d.extras = append(d.extras, x)
	return nil
}

// extraKeysRow reads one block's entry of extra_keys: a list of items.
func extraKeysRow(d *Decoder) error {
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	for range n {
		if err := d.extraItem(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Decoder) extraItem() error {
	kind := ExtraBytes
	switch d.r.next() {
	case classNil:
		return d.r.skip()
	case classArray:
		return d.extraPair()
	case classString:
		kind = ExtraString
	case classBytes:
	default:
		return d.extraOther()
	}
	b, err := d.r.bytes()
	if err != nil {
		return err
	}
	if kind == ExtraString && len(b) == 0 { // an empty name or salt is none
		return nil
	}
	text, err := d.text(b)
	if err != nil {
		return err
	}
	return d.addExtra(Extra{Kind: kind, Text: text})
}

// extraPair reads [identifier, offset]; an array of another shape is an item that cannot be reproduced.
func (d *Decoder) extraPair() error {
	start := d.r.offset()
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	if c := d.r.next(); n == 2 && (c == classString || c == classBytes) {
		b, err := d.r.bytes()
		if err != nil {
			return err
		}
		if offset, err := d.r.int(); err == nil {
			text, err := d.text(b)
			if err != nil {
				return err
			}
			return d.addExtra(Extra{Kind: ExtraPair, Text: text, Offset: offset})
		}
	}
	d.r.seek(start)
	return d.extraOther()
}

func (d *Decoder) extraOther() error {
	if err := d.r.skip(); err != nil {
		return err
	}
	return d.addExtra(Extra{Kind: ExtraOther})
}

// mmKeysRow reads one block's entry of TensorRT-LLM's mm_keys: a list of {type, hash, start_offset}. What start_offset
// counts from was not established, so it is left out.
func mmKeysRow(d *Decoder) error {
	return d.objects(func(d *Decoder, key []byte, x *Extra) error {
		if string(key) != "hash" || d.r.next() != classString {
			return d.r.skip()
		}
		b, err := d.r.bytes()
		if err != nil {
			return err
		}
		x.Kind = ExtraPair
		x.Text, err = d.text(b)
		return err
	})
}

// mmInfoRow reads one block's entry of Dynamo's block_mm_infos: {mm_objects: [{mm_hash, ...}]}.
func mmInfoRow(d *Decoder) error {
	n, err := d.r.mapLen()
	if err != nil {
		return err
	}
	for range n {
		key, err := d.r.key()
		if err != nil {
			return err
		}
		if string(key) == "mm_objects" && d.r.next() != classNil {
			err = d.objects(mmObject)
		} else {
			err = d.r.skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mmObject(d *Decoder, key []byte, x *Extra) error {
	if v, _, size := intAt(d.r.rest()); size > 0 && string(key) == "mm_hash" {
		*x = Extra{Kind: ExtraHash, Offset: int64(v)}
	}
	return d.r.skip()
}

// objects reads a list of maps, each of which is one item: what value makes of its keys. An object without the key
// that value looks for cannot be reproduced.
func (d *Decoder) objects(value func(d *Decoder, key []byte, x *Extra) error) error {
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	for range n {
		keys, err := d.r.mapLen()
		if err != nil {
			return err
		}
		x := Extra{Kind: ExtraOther}
		for range keys {
			key, err := d.r.key()
			if err != nil {
				return err
			}
			if err := value(d, key, &x); err != nil {
				return err
			}
		}
		if err := d.addExtra(x); err != nil {
			return err
		}
	}
	return nil
}
