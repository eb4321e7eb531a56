package recording

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Convert keeps everything that can be read and tells what could not be.
func TestConvert_CountsAndFaults(t *testing.T) {
	lines := strings.TrimSuffix(string(readFile(t, "testdata/sample.jsonl")), "\n")
	text := lines + "\n{\"kind\":\"weather\"}\n{}\n{\"kind\":\"note\",\"t\":\"x\"}\n" + lines + "\n{\"kind\":"
	src, err := NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	dst, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Convert(dst, src)
	if !errors.Is(err, ErrRecord) || !errors.Is(err, ErrTorn) || !strings.Contains(err.Error(), "line 23") {
		t.Errorf("%v", err)
	}
	want := Counts{Sources: 14, Messages: 4, Requests: 16, Notes: 2, ReplayRequests: 2, ReplayReplies: 4, Unknown: 1, Bad: 2, Torn: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	equal(t, mustRead(t, out.Bytes()), append(sample(t), sample(t)...))
}
