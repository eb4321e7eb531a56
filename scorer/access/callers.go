package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	maxCallers = 1000 // lines of the file
	maxName    = 64   // bytes of a caller's name
	minToken   = 16   // bytes of a token that stands in the file itself
	maxToken   = 4096 // bytes of a token that is looked at
)

// identity is a caller of the file.
type identity struct {
	name string
	role Role
}

// callers is what the file says. It never changes.
type callers struct {
	tokens []tokenEntry
	sans   map[string]identity // by subject alternative name of a client certificate
	cns    map[string]identity // by common name
}

type tokenEntry struct {
	digest [sha256.Size]byte
	who    identity
}

// parseCallers reads a file of lines "role name credential"; empty ones and those that start with # are passed over. Its
// errors name lines and quote nothing: what stands in the wrong place may be a token.
func parseCallers(content []byte) (*callers, error) {
	c := &callers{sans: make(map[string]identity), cns: make(map[string]identity)}
	known := make(map[string]Role)
	var faults []error
	n, count := 0, 0
	for line := range bytes.Lines(content) {
		n++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if count++; count > maxCallers {
			return nil, fmt.Errorf("more than %d callers", maxCallers)
		}
		if err := c.add(fields, known); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", n, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, errors.New("no caller is named")
	}
	return c, nil
}

func (c *callers) add(fields []string, known map[string]Role) error {
	if len(fields) != 3 {
		return errors.New("want a role, a name and a credential")
	}
	who := identity{name: fields[1]}
	for _, r := range []Role{RoleScore, RoleOperate} {
		if fields[0] == r.String() {
			who.role = r
		}
	}
	switch have, again := known[who.name]; {
	case who.role == RoleNone:
		return errors.New("the role is neither score nor operate")
	case !goodName(who.name):
		return fmt.Errorf("the name has other characters than letters, digits and . _ - @ / : or not 1 to %d of them", maxName)
	case again && have != who.role:
		return errors.New("the name has another role already")
	}
	known[who.name] = who.role
	return c.credential(fields[2], who)
}

// credential adds one way in which who is known.
func (c *callers) credential(text string, who identity) error {
	kind, value, _ := strings.Cut(text, ":")
	switch kind {
	case "sha256":
		digest, err := hex.DecodeString(value)
		if err != nil || len(digest) != sha256.Size {
			return errors.New("what follows sha256: is not 64 hexadecimal digits")
		}
		return c.token([sha256.Size]byte(digest), who)
	case "token":
		if len(value) < minToken || len(value) > maxToken {
			return fmt.Errorf("the token is not of %d to %d bytes", minToken, maxToken)
		}
		return c.token(sha256.Sum256([]byte(value)), who)
	case "san":
		return name(c.sans, value, who)
	case "cn":
		return name(c.cns, value, who)
	default:
		return errors.New("the credential is none of sha256:, token:, san: and cn: with a value")
	}
}

var errTaken = errors.New("the credential is that of an earlier line")

func (c *callers) token(digest [sha256.Size]byte, who identity) error {
	for _, have := range c.tokens {
		if have.digest == digest {
			return errTaken
		}
	}
	c.tokens = append(c.tokens, tokenEntry{digest, who})
	return nil
}

func name(names map[string]identity, value string, who identity) error {
	if value == "" {
		return errors.New("the name of the certificate is missing")
	}
	if _, taken := names[value]; taken {
		return errTaken
	}
	names[value] = who
	return nil
}

// goodName says whether a caller's name can stand in a log and a label as it is.
func goodName(s string) bool {
	return s != "" && len(s) <= maxName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@/:") == ""
}

// byToken looks at every token, so that how long it takes tells nothing.
func (c *callers) byToken(token string) (who identity, ok bool) {
	if len(token) > maxToken {
		return identity{}, false
	}
	digest := sha256.Sum256([]byte(token))
	at := -1
	for i := range c.tokens {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(c.tokens[i].digest[:], digest[:]), i, at)
	}
	if at < 0 {
		return identity{}, false
	}
	return c.tokens[at].who, true
}

// byCertificate goes by the first of the names that the file has: URIs, DNS names, addresses of mail and of hosts, then the
// common name.
func (c *callers) byCertificate(cert *x509.Certificate) (who identity, ok bool) {
	for _, n := range alternatives(cert) {
		if who, ok := c.sans[n]; ok {
			return who, true
		}
	}
	who, ok = c.cns[cert.Subject.CommonName]
	return who, ok
}

// alternatives are the subject alternative names of a certificate.
func alternatives(cert *x509.Certificate) []string {
	var out []string
	for _, u := range cert.URIs {
		out = append(out, u.String())
	}
	out = append(append(out, cert.DNSNames...), cert.EmailAddresses...)
	for _, ip := range cert.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

// nameOf is what a certificate is called when no file names it.
func nameOf(cert *x509.Certificate) string {
	names := append(alternatives(cert), cert.Subject.CommonName)
	return names[0]
}
