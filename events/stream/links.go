package stream

// connection is one open connection to a publisher.
type connection struct {
	spoke bool
	last  uint64 // number of its last message, if it spoke
}

// links tells which connection is the source's. When the engines dial us, several may be open, and the newest that
// speaks is the publisher: an engine that came back by another connection may leave the old one open for a while.
type links struct {
	bound bool
	open  map[uint64]*connection
	// owner is the connection that is the source's, 0 if none has been.
	owner uint64
	// owned: owner has spoken, or is the only one there can be.
	owned bool
}

// up adds a connection and says whether the stream begins a session by it: no other is the source's now.
func (k *links) up(conn uint64) bool {
	if k.open[conn] != nil {
		return false // it spoke before we were told of it
	}
	alone := k.open[k.owner] == nil
	k.open[conn] = &connection{}
	if !k.bound {
		k.owner, k.owned = conn, true
		return true
	}
	if alone {
		k.owned = false
	}
	return alone
}

// down removes a connection and says whether a session begins by that: the source's own is gone, and a newer one is
// open that has not spoken yet. An engine that comes back quickly dials before its old connection has ended.
func (k *links) down(conn uint64) bool {
	delete(k.open, conn)
	if conn != k.owner || !k.owned {
		return false
	}
	for other, c := range k.open {
		if other > conn && !c.spoke {
			k.owned = false
		}
	}
	return !k.owned
}

// alive says whether the source has a connection: its own, or while none has spoken one that may become it.
func (k *links) alive() bool {
	if k.owned {
		return k.open[k.owner] != nil
	}
	return len(k.open) > 0
}

// speak notes that conn brought a message. It is not taken if a newer connection has become the source's. fresh means
// that the source changes hands by it.
func (k *links) speak(conn uint64) (taken, fresh bool) {
	known := k.open[conn] != nil
	if !known {
		k.open[conn] = &connection{}
	}
	if conn == k.owner {
		k.owned = true
		return true, false
	}
	if conn < k.owner && k.open[k.owner] != nil {
		return false, false
	}
	fresh = k.owned || !known
	k.owner, k.owned = conn, true
	return true, fresh
}
