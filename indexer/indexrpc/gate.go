package indexrpc

// Gate bounds how many calls run at once. Nobody waits at it: who finds it full is told so. It is safe for concurrent
// use.
type Gate struct {
	places chan struct{}
}

// NewGate makes a gate for n calls.
func NewGate(n int) *Gate { return &Gate{places: make(chan struct{}, n)} }

// Enter says whether there was room. Who entered must Leave.
func (g *Gate) Enter() bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// Leave makes room for another call.
func (g *Gate) Leave() { <-g.places }

// Inside is how many calls run now.
func (g *Gate) Inside() int { return len(g.places) }
