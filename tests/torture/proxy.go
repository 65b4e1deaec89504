package main

import (
	"cmp"
	"errors"
	"net"
	"sync"
	"time"
)

// proxy lies between the application and a broker. It reads Kafka's requests as they pass, and
// does to some of them, or to their answers, what a network or a broker in trouble does.
type proxy struct {
	listener net.Listener
	all      sync.WaitGroup // goroutines of accept and of connections

	mu     sync.Mutex
	target string // empty: nobody is let in yet
	conns  map[*proxied]struct{}
	lose   bool
	gone   bool // nobody is let in
	delay  time.Duration
	faults []*fault
	unmet  []string                 // faults that nobody came to until they were healed
	held   map[string]chan struct{} // transactional ids whose end was answered and is not there; closed when it is
	looked chan struct{}            // closed when somebody reads the group's offsets while one is held; nil: none ever was
	closed bool
	err    error // the first mistake of the proxy itself
}

// fault is what happens to the next requests of one kind.
type fault struct {
	name  string // of the step
	key   int16
	code  int16         // the error that answers it; the broker does not see the request
	late  time.Duration // or the request reaches the broker so late, and its connection breaks
	early time.Duration // or it is answered at once, as done, and reaches the broker so late
	left  int
}

func newProxy() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, conns: map[*proxied]struct{}{}, held: map[string]chan struct{}{}}
	p.all.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// forward lets connections through to a broker.
func (p *proxy) forward(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// breakAll closes all connections.
func (p *proxy) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.hangUp()
	}
}

// loseAnswers makes every answer from now on disappear: the broker acts on all requests, and
// nobody learns of it.
func (p *proxy) loseAnswers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = true
}

// off closes all connections and refuses new ones, as a broker that is not there.
func (p *proxy) off() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.breakAll()
}

func (p *proxy) delayAnswers(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// add arms a fault.
func (p *proxy) add(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// heal ends all troubles. Connections that lost an answer are closed: what follows would make no
// sense to their clients.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.left > 0 {
			p.unmet = append(p.unmet, f.name)
		}
	}
	p.lose, p.gone, p.delay, p.faults = false, false, 0, nil
	for c := range p.conns {
		if c.lost {
			c.hangUp()
		}
	}
}

// meet gives the fault that a request meets, if any.
func (p *proxy) meet(key int16) (fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.key == key && f.left > 0 {
			f.left--
			return *f, true
		}
	}
	return fault{}, false
}

// answer says what happens to an answer of a connection.
func (p *proxy) answer(c *proxied) (lost bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.lost = c.lost || p.lose // once one is lost, all later ones of the connection are
	return c.lost, p.delay
}

func (p *proxy) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = cmp.Or(p.err, err)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.mu.Lock()
		target, closed := p.target, p.closed || p.gone
		p.mu.Unlock()
		if target == "" || closed {
			_ = client.Close()
			continue
		}
		server, err := net.DialTimeout("tcp", target, time.Second)
		if err != nil {
			_ = client.Close() // as the broker itself would refuse
			continue
		}
		c := &proxied{proxy: p, client: client, server: server, waiting: make(chan waiting, 4096)}
		p.mu.Lock()
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.all.Go(c.requests)
		p.all.Go(c.answers)
	}
}

// close ends all connections and goroutines.
func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.hangUp()
		_ = c.server.Close() // nobody waits for its answers any more
	}
	p.mu.Unlock()
	p.all.Wait()
	return errors.Join(err, p.err)
}
