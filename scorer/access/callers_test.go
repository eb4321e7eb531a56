package access

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseCallers(t *testing.T) {
	c, err := parseCallers([]byte(`# comment
score   gateway   token:gateway-token-0123
score   gateway   sha256:9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08

operate ops@x     san:spiffe://cluster.local/ns/ops/sa/admin
operate old       cn:old.example
`))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{
		"gateway-token-0123": "gateway score",
		"test":               "gateway score", // Python: hashlib.sha256(b"test").hexdigest()
		"Test":               "", "": "", "gateway-token-012": "",
		strings.Repeat("x", maxToken+1): "",
	} {
		got := ""
		if who, ok := c.byToken(token); ok {
			got = who.name + " " + who.role.String()
		}
		if got != want {
			t.Errorf("token %q is %q, want %q", token, got, want)
		}
	}
	if c.sans["spiffe://cluster.local/ns/ops/sa/admin"].role != RoleOperate || c.cns["old.example"].name != "old" {
		t.Errorf("certificates: %v %v", c.sans, c.cns)
	}
}

// Invariant 3: what is wrong in the file is told by its line, and never with what stands there.
func TestParseCallers_ErrorsQuoteNothing(t *testing.T) {
	const secret = "S3cretS3cretS3cret"
	for text, want := range map[string]string{
		"":                   "no caller",
		"# only a comment\n": "no caller",
		"score gw":           "line 1: want a role",
		"score gw token:" + secret + " " + secret:                       "line 1: want a role",
		secret + " gw token:" + secret:                                  "line 1: the role",
		"none gw token:" + secret:                                       "line 1: the role",
		"score " + secret + "! token:" + secret:                         "line 1: the name has",
		"score " + strings.Repeat("n", 65) + " token:" + secret:         "line 1: the name has",
		"score gw " + secret:                                            "line 1: the credential is none of",
		"score gw token:S3cret":                                         "line 1: the token is not of 16",
		"score gw sha256:" + secret:                                     "line 1: what follows sha256:",
		"score gw sha256:00":                                            "line 1: what follows sha256:",
		"score gw san:":                                                 "line 1: the name of the certificate",
		"\nscore a token:" + secret + "\nscore b token:" + secret:       "line 3: the credential is that",
		"score a cn:" + secret + "\nscore b cn:" + secret:               "line 2: the credential is that",
		"score a token:" + secret + "\noperate a token:" + secret + "2": "line 2: the name has another role",
		many(): "more than 1000",
	} {
		_, err := parseCallers([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "S3cret") {
			t.Errorf("%.60q is quoted: %v", text, err)
		}
	}
}

// many are more callers than there may be.
func many() string {
	var b strings.Builder
	for i := range maxCallers + 1 {
		fmt.Fprintf(&b, "score c%d token:0123456789abcdef%d\n", i, i)
	}
	return b.String()
}
