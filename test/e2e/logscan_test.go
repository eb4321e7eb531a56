package e2e

import (
	"regexp"
	"strings"
	"sync"
	"testing"
)

// told are the salts and keys that any test has sent to any server, which none of them may write.
var told struct {
	sync.Mutex // guards secrets
	secrets    map[string]bool
}

var secretFields = regexp.MustCompile(`"(?:cacheSalt|extraKey)":\s*"([^"\\]{6,})"`)

// remember keeps the secrets of a request that is told.
func remember(body []byte) {
	told.Lock()
	defer told.Unlock()
	for _, m := range secretFields.FindAllSubmatch(body, -1) {
		if told.secrets == nil {
			told.secrets = make(map[string]bool)
		}
		told.secrets[string(m[1])] = true
	}
}

// scan looks through the log of a server, whatever its test was about, for salts and for token ids.
func scan(t testing.TB, log string) {
	t.Helper()
	told.Lock()
	defer told.Unlock()
	for secret := range told.secrets {
		if strings.Contains(log, secret) {
			t.Errorf("the log has the salt or key %q", secret)
		}
	}
	if found := numbers.FindString(log); found != "" {
		t.Errorf("the log has numbers in a row, as token ids would be: %s", found)
	}
}
