package render

import (
	"net/http"
	"strings"
)

// maxHeader bounds the forwarded headers of one request, names and values, in bytes.
const maxHeader = 16 << 10

// ownHeaders belong to the hop between this client and the renderer and are never taken from the caller: connection
// and form of the body, credentials, and what would let net/http send a POST twice.
var ownHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Authorization": true, "Connection": true, "Content-Encoding": true,
	"Content-Length": true, "Content-Type": true, "Cookie": true, "Expect": true, "Host": true,
	"Idempotency-Key": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"User-Agent": true, "X-Idempotency-Key": true,
}

// forward copies what may be forwarded of from into to. It errs with ErrHeader.
func forward(to, from http.Header) error {
	size := 0
	for name, values := range from {
		if !legalName(name) {
			return failf(ReasonHeader, "a name of %d bytes is not legal", len(name))
		}
		name = http.CanonicalHeaderKey(name)
		if ownHeaders[name] {
			continue
		}
		for _, v := range values {
			if !legalValue(v) {
				return failf(ReasonHeader, "value of %.100q is not legal", name)
			}
			if size += len(name) + len(v); size > maxHeader {
				return failf(ReasonHeader, "more than %d bytes", maxHeader)
			}
			to.Add(name, v)
		}
	}
	return nil
}

// legalName says whether s is a token of RFC 9110, 5.6.2.
func legalName(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// legalValue says whether s can be a header's value: no control characters except for the tab.
func legalValue(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
