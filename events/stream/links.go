package stream

import "net"

// connection is one open connection to a publisher.
type connection struct {
	host  string // of the peer
	spoke bool
	last  uint64 // number of its last message, if it spoke
}

// links tells which connection is the source's. When the engines dial us, several may be open, and the newest that
// speaks is the publisher: an engine that came back by another connection may leave the old one open for a while. One
// that has not spoken may be a stranger's. It counts only while nothing was ever heard of the source, or if it comes from
// the host that spoke last: an engine that came back and is idle.
type links struct {
	bound bool
	open  map[uint64]*connection
	// owner is the connection that is the source's, 0 if none has been.
	owner uint64
	// owned: owner has spoken, or is the only one there can be.
	owned bool
	// home is the host of the last connection that spoke, "" if none has.
	home string
}

// likely says whether c may be the source's though it has not spoken.
func (k *links) likely(c *connection) bool { return k.home == "" || c.host == k.home }

// up adds a connection and says whether the stream begins a session by it: no other is the source's now.
func (k *links) up(conn uint64, remote string) bool {
	host := hostOf(remote)
	if c := k.open[conn]; c != nil {
		c.host = host // it spoke before we were told of it
		if conn == k.owner && k.bound {
			k.home = host
		}
		return false
	}
	alone := k.open[k.owner] == nil
	c := &connection{host: host}
	k.open[conn] = c
	if !k.bound {
		k.owner, k.owned = conn, true
		return true
	}
	if !alone || !k.likely(c) {
		return false
	}
	k.owned = false
	return true
}

// down removes a connection and says whether a session begins by that: the source's own is gone, and a newer one is
// open that has not spoken yet. An engine that comes back quickly dials before its old connection has ended.
func (k *links) down(conn uint64) bool {
	delete(k.open, conn)
	if conn != k.owner || !k.owned {
		return false
	}
	for other, c := range k.open {
		if other > conn && !c.spoke && k.likely(c) {
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
	for _, c := range k.open {
		if c.spoke || k.likely(c) {
			return true
		}
	}
	return false
}

// speak notes that conn brought a message. It is not taken if a newer connection has become the source's. fresh means
// that the source changes hands by it.
func (k *links) speak(conn uint64) (taken, fresh bool) {
	c := k.open[conn]
	known := c != nil
	if !known {
		c = &connection{}
		k.open[conn] = c
	}
	if conn == k.owner {
		k.owned = true
		k.home = c.host
		return true, false
	}
	if conn < k.owner && k.open[k.owner] != nil {
		return false, false
	}
	fresh = k.owned || !known
	k.owner, k.owned, k.home = conn, true, c.host
	return true, fresh
}

// hostOf is the host of a peer's address; of a socket in the file system all of it.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}
