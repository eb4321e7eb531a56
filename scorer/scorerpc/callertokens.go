package scorerpc

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/render"
)

// callerTokens is the prompt that the body's caller made itself, if callers are trusted: an engine that takes such ids
// runs them and not what the messages say. It is nil for a body without. From callers that are not trusted such a body is
// refused: rendered, it might be scored by other tokens than the engine will run.
func (s *Service) callerTokens(body []byte, said *bodyFacts) ([]uint32, error) {
	if said.ids == "" {
		return nil, nil
	}
	if !s.opts.TrustCallerTokens {
		return nil, indexrpc.Failf(indexrpc.ReasonCallerTokens, "the body carries its caller's tokens in %s, and callers are not trusted", said.ids)
	}
	tokens, err := readCallerTokens(body)
	if err != nil {
		return nil, err
	}
	q, err := indexrpc.ReadPrompt(&kvscoutv1.ScoreRequest{Tokens: tokens}, s.opts.MaxPromptTokens)
	return q.Tokens, err
}

// readCallerTokens reads the ids of the one member that has them. Of prompt_token_ids and its packed form the first
// counts, as in TensorRT-LLM.
func readCallerTokens(body []byte) (*kvscoutv1.Tokens, error) {
	found := make(map[string][]byte) // at most the names below
	err := render.EachMember(body, func(m render.Member) error {
		switch m.Name {
		case idsList, idsPacked, idsSGLang:
			found[m.Name] = m.Value
		case extension, transfer:
			// scanBody has read nvext already, and what is no object has no ids.
			_ = render.EachMember(m.Value, func(inner render.Member) error {
				if m.Name == extension && inner.Name == "token_data" || m.Name == transfer && inner.Name == idsList {
					found[m.Name] = inner.Value
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, badBody(err.Error())
	}
	for name, value := range found {
		if string(value) == "null" {
			delete(found, name)
		}
	}
	if found[idsList] != nil {
		delete(found, idsPacked)
	}
	if len(found) != 1 {
		return nil, indexrpc.Failf(indexrpc.ReasonTwoPrompts, "the body carries tokens in %d members", len(found))
	}
	for name, value := range found {
		return parseTokens(name, value)
	}
	return nil, errors.New("unreachable: one member was found")
}

func parseTokens(name string, value []byte) (*kvscoutv1.Tokens, error) {
	out := new(kvscoutv1.Tokens)
	if name != idsPacked {
		if json.Unmarshal(value, &out.Ids) != nil { // its error would show tokens
			return nil, badBody(name + " is no list of token ids")
		}
		return out, nil
	}
	text, ok := render.Text(value)
	packed, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, badBody(name + " is no base64 text")
	}
	out.Packed = packed
	return out, nil
}

// packed is the packed form of token ids, each below 2^31; nil for none.
func packed(ids []uint32) *kvscoutv1.Tokens {
	if len(ids) == 0 {
		return nil
	}
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint32(out, id)
	}
	return &kvscoutv1.Tokens{Packed: out}
}
