package scorerpc

import (
	"bytes"

	"github.com/kvscout/kvscout/render"
)

// mediaKeys and mediaTypes mark a part that is not text: as a field of the part, as the value of its "type".
var (
	mediaKeys = map[string]bool{
		"image_url": true, "image_pil": true, "image_embeds": true, "input_image": true, "audio_url": true,
		"audio_embeds": true, "input_audio": true, "video_url": true, "video_embeds": true, "input_video": true,
	}
	mediaTypes = map[string]bool{"image": true, "audio": true, "video": true}
)

// maxKey is longer than every name we look for, spelled with escapes only.
const maxKey = 128

// hasMediaPart says whether the value of "messages" has a part of another kind than text, at any depth. It keeps no
// stack: a string is a field's name exactly if a colon follows it.
func hasMediaPart(messages []byte) bool {
	for rest := messages; ; {
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			return false
		}
		name, after := oneText(rest[i:])
		if after = bytes.TrimLeft(after, " \t\r\n"); len(after) == 0 || after[0] != ':' {
			rest = after
			continue
		}
		rest = bytes.TrimLeft(after[1:], " \t\r\n")
		switch key := short(name); {
		case mediaKeys[key]:
			return true
		case key == "type" && len(rest) > 0 && rest[0] == '"':
			value, after := oneText(rest)
			if kind := short(value); mediaKeys[kind] || mediaTypes[kind] {
				return true
			}
			rest = after
		}
	}
}

// oneText splits a text that begins with a string behind that string.
func oneText(rest []byte) (quoted, after []byte) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return rest[:i+1], rest[i+1:]
		}
	}
	return rest, nil
}

// short is the text of a quoted string that may be a name we look for; "" for any other.
func short(quoted []byte) string {
	if len(quoted) > maxKey {
		return ""
	}
	text, _ := render.Text(quoted)
	return text
}
