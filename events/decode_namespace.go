package events

// The fields below say in which cache namespace an event's blocks are. One that cannot be read rejects the event with
// ReasonBadNamespace: it is never taken for one of the unsalted base model (rule 3).

// namespaceText reads a name or salt; nil and the empty string are none.
func (d *Decoder) namespaceText() (string, error) {
	switch d.r.next() {
	case classNil:
		return "", d.r.skip()
	case classString:
	default:
		return "", fault(ReasonBadNamespace)
	}
	b, err := d.r.bytes()
	if err != nil {
		return "", err
	}
	return d.text(b)
}

func (d *Decoder) readLoraName(e *Event) (err error) {
	e.LoraName, err = d.namespaceText()
	return err
}

// readSalt reads a salt, which an event may carry in several places: then they must agree.
func (d *Decoder) readSalt(e *Event) error {
	salt, err := d.namespaceText()
	if err != nil || salt == "" {
		return err
	}
	if e.Salt != "" && e.Salt != salt {
		return fault(ReasonBadNamespace)
	}
	e.Salt = salt
	return nil
}

// readMetadata reads {cache_salt, ...} (SGLang).
func (d *Decoder) readMetadata(e *Event) error {
	switch d.r.next() {
	case classNil:
		return d.r.skip()
	case classMap:
	default:
		return fault(ReasonBadNamespace)
	}
	n, err := d.r.mapLen()
	if err != nil {
		return err
	}
	for range n {
		key, err := d.r.key()
		if err != nil {
			return err
		}
		if string(key) == "cache_salt" {
			err = d.readSalt(e)
		} else {
			err = d.r.skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSlot7 reads the eighth element of an array store, which is the adapter's name (vLLM), a map with the salt
// (SGLang), or a list of the caches that hold the blocks (a fork of SGLang): its type tells which.
func (d *Decoder) readSlot7(e *Event) error {
	switch d.r.next() {
	case classMap:
		return d.readMetadata(e)
	case classArray:
		return d.readComponents(e)
	default:
		return d.readLoraName(e)
	}
}

// readComponents reads which caches of a hybrid SGLang model hold the blocks: one name or a list of them. With "full"
// among them, or none at all, nothing about the blocks is special.
func (d *Decoder) readComponents(e *Event) error {
	n := 1
	switch d.r.next() {
	case classNil:
		return d.r.skip()
	case classArray:
		var err error
		if n, err = d.r.arrayLen(); err != nil {
			return err
		}
	}
	full, spec := n == 0, SpecUnknown
	for range n {
		if d.r.next() != classString {
			return fault(ReasonBadNamespace)
		}
		b, err := d.r.bytes()
		if err != nil {
			return err
		}
		switch string(b) {
		case "full":
			full = true
		case "swa":
			spec = SpecSlidingWindow
		case "mamba":
			spec = SpecMamba
		}
	}
	if !full {
		e.Spec = spec
	}
	return nil
}
