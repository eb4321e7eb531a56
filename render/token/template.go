package token

import "encoding/json"

// template is what a post-processor makes of the ids of a text: pieces in order. Without one, it is the ids alone.
type template []templatePiece

// templatePiece is the ids of the text, or special ones.
type templatePiece struct {
	text bool
	ids  []uint32
}

// Bounds of a template; real ones have up to three pieces of one id.
const (
	maxPieces   = 64
	maxPieceIDs = 64
)

// parseTemplate reads a post_processor. One in a file may add ids; the others only concern offsets.
func parseTemplate(raw json.RawMessage) (template, error) {
	t, err := addTemplate(nil, raw, 0)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = template{{text: true}}
	}
	return t, nil
}

func addTemplate(t template, raw json.RawMessage, depth int) (template, error) {
	kind, err := kindOf(raw)
	if err != nil || kind == "" && depth == 0 {
		return t, err
	}
	switch kind {
	case "Sequence":
		var v struct {
			Type       string
			Processors []json.RawMessage
		}
		if err := strictly(raw, &v); err != nil {
			return nil, err
		}
		if len(v.Processors) > maxSteps || depth > 4 {
			return nil, unsupported("more than %d post-processors, or deep nesting", maxSteps)
		}
		for _, part := range v.Processors {
			if t, err = addTemplate(t, part, depth+1); err != nil {
				return nil, err
			}
		}
		return t, nil
	case "ByteLevel":
		return t, nil
	case "TemplateProcessing", "RobertaProcessing", "BertProcessing":
		if t != nil {
			return nil, unsupported("two post-processors that add tokens")
		}
	}
	switch kind {
	case "TemplateProcessing":
		return parsePieces(raw)
	case "RobertaProcessing", "BertProcessing":
		return parseEnds(raw)
	}
	return nil, unsupported("post-processor %.40q", kind)
}

// parsePieces reads a TemplateProcessing. Its template of two texts is never used.
func parsePieces(raw json.RawMessage) (template, error) {
	var v struct {
		Type   string
		Single []struct {
			Sequence *struct {
				ID   string `json:"id"`
				Type uint32 `json:"type_id"`
			}
			SpecialToken *struct {
				ID   string `json:"id"`
				Type uint32 `json:"type_id"`
			}
		}
		Pair    json.RawMessage
		Special map[string]struct {
			ID     string   `json:"id"`
			IDs    []uint32 `json:"ids"`
			Tokens []string `json:"tokens"`
		} `json:"special_tokens"`
		// Fields of ByteLevel, which Cohere's file has here; the library does not look at them.
		AddPrefix   *bool `json:"add_prefix_space"`
		TrimOffsets *bool `json:"trim_offsets"`
		UseRegex    *bool `json:"use_regex"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	if len(v.Single) > maxPieces {
		return nil, unsupported("template of %d pieces, over %d", len(v.Single), maxPieces)
	}
	t := template{}
	for _, piece := range v.Single {
		switch {
		case piece.Sequence != nil && piece.SpecialToken == nil && piece.Sequence.ID == "A":
			t = append(t, templatePiece{text: true})
		case piece.SpecialToken != nil && piece.Sequence == nil:
			special, ok := v.Special[piece.SpecialToken.ID]
			if !ok {
				return nil, badFile("template names the special token %.40q, which it does not have", piece.SpecialToken.ID)
			}
			if len(special.IDs) > maxPieceIDs {
				return nil, unsupported("special token of %d ids, over %d", len(special.IDs), maxPieceIDs)
			}
			t = append(t, templatePiece{ids: special.IDs})
		default:
			return nil, unsupported("piece of a template that is neither the text nor a special token")
		}
	}
	return t, nil
}

// parseEnds reads a RobertaProcessing or BertProcessing: one id before the text, one behind it.
func parseEnds(raw json.RawMessage) (template, error) {
	var v struct {
		Type        string
		Sep, Cls    []json.RawMessage
		TrimOffsets *bool `json:"trim_offsets"`
		AddPrefix   *bool `json:"add_prefix_space"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	var ids [2]uint32
	for i, pair := range [2][]json.RawMessage{v.Cls, v.Sep} {
		if len(pair) != 2 || json.Unmarshal(pair[1], &ids[i]) != nil {
			return nil, badFile("post-processor without cls or sep")
		}
	}
	return template{{ids: ids[:1]}, {text: true}, {ids: ids[1:]}}, nil
}
