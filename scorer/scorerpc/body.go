package scorerpc

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/render"
)

// bodyFacts is what a body says that decides where its prompt lies. Of a repeated field the last counts, as in Python.
type bodyFacts struct {
	// model and salt are the fields "model" and "cache_salt"; empty if absent or null.
	model, salt string
	// extensionSalt is "cache_salt" of the gateway's extension object "nvext".
	extensionSalt string
	// extraKey and adapter are SGLang's "extra_key" and "lora_path". Only its bodies mean something by them.
	extraKey, adapter string
	// odd names one of these two that is neither text nor null.
	odd string
	// ids names the member that carries the caller's own token ids, empty if there is none.
	ids string
	// media says that a message has a part of another kind than text.
	media bool
}

// extension is the member that gateways add for themselves (Dynamo's NvExt).
const extension = "nvext"

// scanBody reads the facts of a JSON body in one pass that keeps nothing else. It trusts whoever renders the body to
// refuse what is no JSON: it is right about every text that Python's json module accepts, and errs with BAD_BODY only
// where it cannot tell the facts. No error quotes the body.
func scanBody(body []byte) (bodyFacts, error) {
	var facts bodyFacts
	err := render.EachMember(body, func(m render.Member) (err error) {
		switch m.Name {
		case "model":
			facts.model, err = readModel(m)
		case "cache_salt":
			facts.salt, err = readSalt(m)
		case extension:
			err = facts.readExtension(m)
		case "extra_key":
			facts.extraKey = facts.sglangText(m)
		case "lora_path":
			facts.adapter = facts.sglangText(m)
		case "messages":
			facts.media = hasMediaPart(m.Value)
		default:
			facts.noteTokens(m)
		}
		return err
	})
	if errors.Is(err, render.ErrNoObject) {
		err = badBody(err.Error())
	}
	if err != nil {
		return bodyFacts{}, err
	}
	return facts, nil
}

func badBody(text string) error { return indexrpc.Failf(indexrpc.ReasonBadBody, "%s", text) }

func isNull(m render.Member) bool { return string(m.Value) == "null" }

func readSalt(m render.Member) (string, error) {
	if isNull(m) {
		return "", nil
	}
	if m.Value[0] != '"' {
		return "", badBody("cache_salt is no string")
	}
	// A replacement character may stand for what is no text. Two such salts must not become one.
	salt, ok := render.Text(m.Value)
	if !ok || strings.ContainsRune(salt, utf8.RuneError) {
		return "", badBody("cache_salt is no text")
	}
	return salt, nil
}

func readModel(m render.Member) (string, error) {
	if m.Value[0] != '"' {
		return "", nil // the renderer judges it
	}
	model, ok := render.Text(m.Value)
	if !ok {
		return "", badBody("model is no text")
	}
	return model, nil
}

// readExtension reads nvext. Absent, null and an object are told apart; anything else is refused, because it may have
// meant a salt.
func (f *bodyFacts) readExtension(m render.Member) error {
	f.extensionSalt = ""
	if f.ids == extension+".token_data" {
		f.ids = ""
	}
	if isNull(m) {
		return nil
	}
	err := render.EachMember(m.Value, func(inner render.Member) (err error) {
		switch inner.Name {
		case "cache_salt":
			f.extensionSalt, err = readSalt(inner)
		case "token_data":
			f.note(extension+".token_data", inner)
		}
		return err
	})
	if errors.Is(err, render.ErrNoObject) {
		return badBody(extension + " is no object")
	}
	return err
}

// sglangText is the value of a field of SGLang's, which may be a list for a batch.
func (f *bodyFacts) sglangText(m render.Member) string {
	if isNull(m) {
		return ""
	}
	text, ok := render.Text(m.Value)
	if !ok || strings.ContainsRune(text, utf8.RuneError) {
		f.odd = m.Name
	}
	return text
}

// The members by which engines and gateways take token ids that the caller made: TensorRT-LLM (#15698, #19964), SGLang's
// chat, vLLM (#48145).
const (
	idsList   = "prompt_token_ids"
	idsPacked = "prompt_token_ids_b64"
	idsSGLang = "input_ids"
	transfer  = "kv_transfer_params"
)

// noteTokens notes the caller's own token ids.
func (f *bodyFacts) noteTokens(m render.Member) {
	switch m.Name {
	case idsList, idsPacked, idsSGLang:
		f.note(m.Name, m)
	case transfer:
		// What is no object has no ids.
		_ = render.EachMember(m.Value, func(inner render.Member) error {
			if inner.Name == idsList {
				f.note(transfer+"."+idsList, inner)
			}
			return nil
		})
	}
}

func (f *bodyFacts) note(name string, m render.Member) {
	if !isNull(m) {
		f.ids = name
	}
}
