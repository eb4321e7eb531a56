package events

import "testing"

// The digest and its integer form are a vector of wire.md 2.5.
func TestHashBytes(t *testing.T) {
	digest := unhex(t, "c9d58ba695280d69b243e1e0df813136ca9196b286fb1a021e0b2e028ef071cb")
	h := HashBytes(digest)
	if h.Lo != 2164874634404590027 {
		t.Errorf("low part %d, want vLLM's integer 2164874634404590027", h.Lo)
	}
	if !h.Digest() || HashInt(h.Lo).Digest() {
		t.Error("digest and integer are not told apart")
	}
	for i := range digest { // a digest that differs anywhere is another id (Case53)
		other := append([]byte(nil), digest...)
		other[i] ^= 0x80
		if HashBytes(other) == h {
			t.Errorf("a change of byte %d is not seen", i)
		}
	}
}

func TestHashBytes_Short(t *testing.T) {
	for _, c := range []struct {
		hex  string
		want uint64
	}{
		{"", 0}, {"05", 5}, {"0005", 5}, {"0100", 256}, {"fffffffffffffffd", 18446744073709551613},
		{"1e0b2e028ef071cb", 2164874634404590027},
	} {
		if got := HashBytes(unhex(t, c.hex)); got != HashInt(c.want) {
			t.Errorf("%q is %v, want %d", c.hex, got, c.want)
		}
	}
	if nine := HashBytes(make([]byte, 9)); !nine.Digest() {
		t.Error("nine bytes are taken for an integer")
	}
}

func TestHashString(t *testing.T) {
	if got := HashInt(255).String(); got != "00000000000000ff" {
		t.Errorf("integer is %q", got)
	}
	if got := (Hash{Hi: 1, Lo: 2}).String(); got != "0000000000000001:0000000000000002" {
		t.Errorf("digest is %q", got)
	}
}
