package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
)

// broker is what the application talks to, through a proxy where there is one.
type broker struct {
	addr     string // its own
	embedded *embeddedbroker.Broker
	proxy    *proxy // nil: it runs already, and is not ours
	dir      string
	options  []string
	script   bool // started with scripts/kafka
}

// openBroker starts the broker that the options ask for, or takes the one that runs.
func openBroker(ctx context.Context, o *options) (*broker, error) {
	if len(o.brokers) > 0 {
		return &broker{addr: o.brokers[0]}, nil
	}
	b := &broker{dir: filepath.Join(o.dir, "broker"), script: o.kafka}
	var err error
	if b.proxy, err = newProxy(); err != nil {
		return nil, err
	}
	if !o.kafka {
		if b.embedded, err = embeddedbroker.Start(ctx, embeddedbroker.Options{Dir: b.dir, Advertised: b.proxy.addr()}); err != nil {
			return nil, errors.Join(err, b.proxy.close())
		}
		b.addr = b.embedded.Addr()
		b.proxy.forward(b.addr)
		return b, nil
	}
	// Changelogs are compacted all the time: small segments, and a cleaner that always finds work.
	for _, s := range []string{"advertised.listeners=PLAINTEXT://" + b.proxy.addr(), "log.roll.ms=2000", "log.cleaner.min.cleanable.ratio=0.01",
		"broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500"} {
		b.options = append(b.options, "-o", s)
	}
	if o.timeouts { // it looks for them every 10 s otherwise
		b.options = append(b.options, "-o", "transaction.abort.timed.out.transaction.cleanup.interval.ms=500")
	}
	if b.addr, err = b.kafka(append([]string{"start", b.dir}, b.options...)...); err != nil {
		return nil, errors.Join(err, b.proxy.close())
	}
	b.proxy.forward(b.addr)
	return b, nil
}

// kafka runs scripts/kafka and gives what it prints.
func (b *broker) kafka(args ...string) (string, error) {
	script, err := findScript()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(script, args...)
	cmd.Env = append(os.Environ(), "TIDEMARK_KAFKA_HEAP=512m", "TIDEMARK_KAFKA_START_SECONDS=180")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("scripts/kafka %s: %w\n%s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// findScript looks for scripts/kafka from here upwards.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for from := dir; ; dir = filepath.Dir(dir) {
		script := filepath.Join(dir, "scripts", "kafka")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no scripts/kafka in %s or above: run from the module", from)
		}
	}
}

// do stops, kills or starts an Apache Kafka of our own.
func (b *broker) do(what string) error {
	if !b.script {
		return errors.New("only an Apache Kafka of our own (--kafka) can be stopped and killed")
	}
	if what != "start" {
		_, err := b.kafka(what, b.dir)
		return err
	}
	_, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		return err
	}
	_, err = b.kafka(append([]string{"start", b.dir, "-p", port}, b.options...)...)
	return err
}

// bootstrap is the address for the application.
func (b *broker) bootstrap() string {
	if b.proxy != nil {
		return b.proxy.addr()
	}
	return b.addr
}

// dial connects to the broker itself, whatever address a client was told: what feeds and what
// looks is not troubled.
func (b *broker) dial(ctx context.Context, network, host string) (net.Conn, error) {
	if b.proxy != nil && host == b.proxy.addr() {
		host = b.addr
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	return d.DialContext(ctx, network, host)
}

func (b *broker) close() (err error) {
	if b.proxy != nil {
		err = b.proxy.close()
	}
	if b.embedded != nil {
		err = errors.Join(err, b.embedded.Close())
	}
	if b.script {
		if _, kerr := b.kafka("address", b.dir); kerr == nil { // it runs
			_, kerr = b.kafka("kill", b.dir)
			err = errors.Join(err, kerr)
		}
	}
	return err
}
