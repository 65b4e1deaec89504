package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// groupCommands change what the brokers keep of an application.
func groupCommands() []command {
	return []command{
		{"reset", "start an application over: its internal topics, offsets and local state", runReset},
		{"offsets", "compare stores with the group's offsets, and choose a side where they do not fit", runOffsets},
	}
}

// passwordVariable holds the password for SASL: arguments are seen by everybody on the host.
const passwordVariable = "TIDEMARK_SASL_PASSWORD"

// connection is how to reach the brokers.
type connection struct {
	brokers         string
	tls             bool
	mechanism, user string
}

func (c *connection) flags(f *flag.FlagSet) {
	f.StringVar(&c.brokers, "brokers", "", "bootstrap `addresses`, host:port, separated by commas")
	f.BoolVar(&c.tls, "tls", false, "encrypt connections")
	f.StringVar(&c.mechanism, "sasl", "", "`mechanism`: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; the password is in $"+passwordVariable)
	f.StringVar(&c.user, "sasl-user", "", "`name` for --sasl")
}

// groupFlags are what the commands on a group have in common.
type groupFlags struct {
	app, stateDir  string
	dryRun, asJSON bool
	timeout        time.Duration
	connection
}

func (g *groupFlags) flags(f *flag.FlagSet, stateDir, dryRun string) {
	f.StringVar(&g.app, "app", "", "application `id`")
	f.StringVar(&g.stateDir, "state-dir", "", "the application's state `directory` (Config.StateDir)"+stateDir)
	f.BoolVar(&g.dryRun, "dry-run", false, dryRun)
	f.BoolVar(&g.asJSON, "json", false, "JSON instead of a table")
	f.DurationVar(&g.timeout, "timeout", time.Minute, "for everything together")
	g.connection.flags(f)
}

// missing names the flags without which nothing can be done; empty: none is missing.
func (g *groupFlags) missing(needsStateDir bool) string {
	var missing []string
	if g.app == "" {
		missing = append(missing, "--app")
	}
	if g.brokers == "" {
		missing = append(missing, "--brokers")
	}
	if g.stateDir == "" && needsStateDir {
		missing = append(missing, "--state-dir")
	}
	if len(missing) == 0 {
		return ""
	}
	return "missing: " + strings.Join(missing, ", ")
}

// open makes a client. The caller closes it.
func (c *connection) open() (*kgo.Client, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(c.brokers, ",")...), kgo.ClientID("tidemark"), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(50 * time.Millisecond)} // who asks again wants the broker's answer, not the one of five seconds ago
	if c.tls {
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	password := os.Getenv(passwordVariable)
	switch c.mechanism {
	case "":
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: c.user, Pass: password}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: c.user, Pass: password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: c.user, Pass: password}.AsSha512Mechanism()))
	default:
		return nil, fmt.Errorf("--sasl %s: use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.mechanism)
	}
	return kgo.NewClient(opts...)
}
