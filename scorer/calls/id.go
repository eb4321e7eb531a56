package calls

import "math/rand/v2"

// MaxID bounds the request ids that are taken from callers, in bytes.
const MaxID = 128

const headerRequestID = "X-Request-Id"

// requestID is the caller's id of a request if there is one and it is sane, else one that is made.
func requestID(ids []string) string {
	if len(ids) == 1 && sane(ids[0]) {
		return ids[0]
	}
	const digits = "0123456789abcdef"
	var id [16]byte
	for i, n := 0, rand.Uint64(); i < len(id); i, n = i+1, n>>4 {
		id[i] = digits[n&15]
	}
	return string(id[:])
}

// sane says whether an id may stand in logs and answers as it is.
func sane(id string) bool {
	for _, c := range []byte(id) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		switch c {
		case '-', '_', '.', ':', '/', '+', '=', '@', '~':
		default:
			if !letter && !digit {
				return false
			}
		}
	}
	return id != "" && len(id) <= MaxID
}
