package chat

// kind is the kind of a token.
type kind uint8

const (
	tokEOF kind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokInteger
	tokFloat
	tokString
	tokOperator
)

// token is one token. Text is the data, the name, the decoded string, the digits or the operator.
type token struct {
	kind kind
	text string
	line int
}

func (t token) is(op string) bool { return t.kind == tokOperator && t.text == op }

func (t token) isName(name string) bool { return t.kind == tokName && t.text == name }

// describe names a token for an error.
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data"
	case tokVarBegin, tokBlockBegin:
		return "begin of a tag"
	case tokVarEnd:
		return "end of print statement"
	case tokBlockEnd:
		return "end of statement block"
	case tokString:
		return "string"
	case tokInteger, tokFloat:
		return "number " + t.text
	}
	return "'" + t.text + "'"
}

// The operators, longest first.
var operators = []string{
	"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}
