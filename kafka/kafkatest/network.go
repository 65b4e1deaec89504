package kafkatest

import (
	"net"
	"sync"
)

// Network lies between clients and an embedded cluster. It can lose answers: the cluster
// gets every request and acts on it, but the client learns nothing. And it can hang up, as
// a proxy does whose broker is away.
type Network struct {
	mu    sync.Mutex
	loses bool
	hangs bool // up
	conns map[*conn]struct{}
}

// LoseAnswers makes every answer from now on disappear, on all connections. It may be
// called from a control function of the cluster.
func (n *Network) LoseAnswers() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loses = true
}

// HangUp closes all connections, and each new one in place of its first answer.
func (n *Network) HangUp() {
	n.mu.Lock()
	n.hangs = true
	n.mu.Unlock()
	n.Break()
}

// Heal lets answers and connections pass again. Connections that lost one are closed, as a client could
// not make sense of what follows.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loses, n.hangs = false, false
	for c := range n.conns {
		if c.lost {
			_ = c.Conn.Close()
		}
	}
}

// Break closes all connections.
func (n *Network) Break() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Conn.Close()
	}
}

func (n *Network) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, network: n}, nil
}

type listener struct {
	net.Listener
	network *Network
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := l.network
	wrapped := &conn{Conn: c, network: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns == nil {
		n.conns = make(map[*conn]struct{})
	}
	n.conns[wrapped] = struct{}{}
	return wrapped, nil
}

type conn struct {
	net.Conn
	network *Network
	lost    bool // under network.mu
}

func (c *conn) Write(b []byte) (int, error) {
	c.network.mu.Lock()
	// once one answer is lost, all later ones of the connection are
	c.lost = c.lost || c.network.loses
	lost, hangs := c.lost, c.network.hangs
	c.network.mu.Unlock()
	if hangs {
		_ = c.Conn.Close() // everything was read, so that the other side sees an end and no reset
		return 0, net.ErrClosed
	}
	if lost {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
