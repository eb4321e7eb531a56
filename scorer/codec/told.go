package codec

import (
	"errors"
	"regexp"
)

// where is what protojson tells of a message without quoting it: the place, and a field of the schema.
var where = regexp.MustCompile(`(syntax error )?\(line \d+:\d+\)(: invalid value for \w+ field \w+)?`)

// told is an error of protojson without what it quotes of the message: that may be a prompt or a salt, and errors are logged by
// those who get them.
func told(err error) error {
	text := where.FindString(err.Error())
	if text == "" {
		text = "not of the form that protobuf has in JSON"
	}
	return errors.New(text)
}
