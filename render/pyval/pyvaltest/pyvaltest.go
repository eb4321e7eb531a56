package pyvaltest

import (
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kvscout/kvscout/render/pyval"
)

// Read reads a file of one object.
func Read(t testing.TB, path string) *pyval.Dict {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := pyval.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := v.(*pyval.Dict)
	if !ok {
		t.Fatalf("%s holds no object", path)
	}
	return out
}
