package simulate

import "github.com/kvscout/kvscout/events"

// medium is the only tier of a simulated engine.
const medium = "GPU"

var kindNames = map[events.Kind]string{
	events.Stored:  "BlockStored",
	events.Removed: "BlockRemoved",
	events.Cleared: "AllBlocksCleared",
}

// payload packs a batch as an engine of this form does (invariant 7). now is in Unix seconds.
func (t traits) payload(now float64, rank int, list []events.Event) []byte {
	var p packer
	p.array(3)
	p.float(now)
	p.array(len(list))
	for i := range list {
		switch {
		case t.engine == events.EngineVLLM && t.maps:
			p.vllmMap(&list[i])
		case t.engine == events.EngineVLLM:
			p.vllmArray(&list[i])
		case t.maps:
			p.sglangMap(&list[i])
		default:
			p.sglangArray(&list[i])
		}
	}
	p.int(int64(rank))
	return p
}

// vllmMap is the form of vLLM 0.32 (wire.md 1.2): fields without a default are always there, nil when unset.
func (p *packer) vllmMap(e *events.Event) {
	switch e.Kind {
	case events.Stored:
		p.object(11)
		p.key("type", kindNames[e.Kind])
		p.string("block_hashes")
		p.unsigned(e.Hashes)
		p.string("parent_block_hash")
		p.vllmParent(e)
		p.string("token_ids")
		p.tokens(e.Tokens)
		p.string("block_size")
		p.int(int64(e.BlockSize))
		p.string("lora_id")
		p.loraID(e)
		p.key("medium", medium)
		p.string("lora_name")
		p.text(e.LoraName)
		p.string("extra_keys")
		p.extras(e.Extras)
		p.string("group_idx")
		p.int(int64(e.Group))
		p.key("kv_cache_spec_kind", "full_attention")
	case events.Removed:
		p.object(4)
		p.key("type", kindNames[e.Kind])
		p.string("block_hashes")
		p.unsigned(e.Hashes)
		p.key("medium", medium)
		p.string("group_idx")
		p.int(int64(e.Group))
	default:
		p.object(1)
		p.key("type", kindNames[e.Kind])
	}
}

// vllmArray is the form of vLLM 0.20: positions in place of keys, up to group_idx.
func (p *packer) vllmArray(e *events.Event) {
	switch e.Kind {
	case events.Stored:
		p.array(10)
		p.string(kindNames[e.Kind])
		p.unsigned(e.Hashes)
		p.vllmParent(e)
		p.tokens(e.Tokens)
		p.int(int64(e.BlockSize))
		p.loraID(e)
		p.string(medium)
		p.text(e.LoraName)
		p.extras(e.Extras)
		p.int(int64(e.Group))
	case events.Removed:
		p.array(4)
		p.string(kindNames[e.Kind])
		p.unsigned(e.Hashes)
		p.string(medium)
		p.int(int64(e.Group))
	default:
		p.array(1)
		p.string(kindNames[e.Kind])
	}
}

// sglangMap is the form of SGLang 0.5.23 (wire.md 3.1 f and g): salt and adapter only where set.
func (p *packer) sglangMap(e *events.Event) {
	switch e.Kind {
	case events.Stored:
		n := 7
		for _, s := range []string{e.Salt, e.LoraName} {
			if s != "" {
				n++
			}
		}
		p.object(n)
		p.key("type", kindNames[e.Kind])
		p.string("block_hashes")
		p.signed(e.Hashes)
		p.string("parent_block_hash")
		p.sglangParent(e)
		p.string("token_ids")
		p.tokens(e.Tokens)
		p.string("block_size")
		p.int(int64(e.BlockSize))
		p.string("lora_id")
		p.nil()
		p.key("medium", medium)
		if e.Salt != "" {
			p.key("cache_salt", e.Salt)
		}
		if e.LoraName != "" {
			p.key("lora_name", e.LoraName)
		}
	case events.Removed:
		p.object(3)
		p.key("type", kindNames[e.Kind])
		p.string("block_hashes")
		p.signed(e.Hashes)
		p.key("medium", medium)
	default:
		p.object(1)
		p.key("type", kindNames[e.Kind])
	}
}

// sglangArray is the form of SGLang 0.5.19 (wire.md 3.1 c): an eighth element, a map, only where salted.
func (p *packer) sglangArray(e *events.Event) {
	switch e.Kind {
	case events.Stored:
		n := 7
		if e.Salt != "" {
			n = 8
		}
		p.array(n)
		p.string(kindNames[e.Kind])
		p.signed(e.Hashes)
		p.sglangParent(e)
		p.tokens(e.Tokens)
		p.int(int64(e.BlockSize))
		p.nil() // lora_id
		p.string(medium)
		if e.Salt != "" {
			p.object(1)
			p.key("cache_salt", e.Salt)
		}
	case events.Removed:
		p.array(3)
		p.string(kindNames[e.Kind])
		p.signed(e.Hashes)
		p.string(medium)
	default:
		p.array(1)
		p.string(kindNames[e.Kind])
	}
}

func (p *packer) key(name, value string) {
	p.string(name)
	p.string(value)
}

func (p *packer) unsigned(list []events.Hash) {
	p.array(len(list))
	for _, h := range list {
		p.uint(h.Lo)
	}
}

func (p *packer) signed(list []events.Hash) {
	p.array(len(list))
	for _, h := range list {
		p.int(int64(h.Lo))
	}
}

func (p *packer) vllmParent(e *events.Event) {
	if !e.HasParent {
		p.nil()
		return
	}
	p.uint(e.Parent.Lo)
}

func (p *packer) sglangParent(e *events.Event) {
	if !e.HasParent {
		p.nil()
		return
	}
	p.int(int64(e.Parent.Lo))
}

func (p *packer) loraID(e *events.Event) {
	if !e.HasLoraID {
		p.nil()
		return
	}
	p.int(e.LoraID)
}

// extras writes one entry a block, nil where the block has no extra keys. The simulator makes only strings.
func (p *packer) extras(list [][]events.Extra) {
	p.array(len(list))
	for _, block := range list {
		if block == nil {
			p.nil()
			continue
		}
		p.array(len(block))
		for _, x := range block {
			p.string(x.Text)
		}
	}
}
