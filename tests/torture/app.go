package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

// clients are those that this build has.
var clients = map[string]kafka.Client{"franz": franz.Client{}}

// appVariable makes a process the application; its value is the order.
const appVariable = "TIDEMARK_TORTURE_APP"

// appOrder is what a process of the application is told.
type appOrder struct {
	Name, App, StateDir, Guarantee, Client string
	Brokers                                []string
	Commit, Session, Transaction, Start    time.Duration
	Workers                                int
	Single                                 bool // one store only
}

// runName is the start of a process that this is.
var runName string

// appMain runs the application in a process that was started for it, and then does not return.
func appMain() {
	text := os.Getenv(appVariable)
	if text == "" {
		return
	}
	var o appOrder
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		runName = o.Name
		err = o.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs the application until a SIGTERM. Its standard input brings the orders for the disk; the
// end of it is that of the program that started the process, which ends with it.
func (o *appOrder) run() error {
	d := newDisk()
	go func() {
		if err := d.obey(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "FAILED:", err)
		}
		os.Exit(3)
	}()
	topology, err := newTopology(names{o.App}, o.Single)
	if err != nil {
		return err
	}
	guarantee := streams.AtLeastOnce
	if o.Guarantee == streams.ExactlyOnce.String() {
		guarantee = streams.ExactlyOnce
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	log.Info("begin", "run", o.Name, "pid", os.Getpid())
	var app *streams.App
	listener := func(_, to streams.State) {
		if to == streams.Running {
			log.Info(sawText, "run", o.Name, "saw", see(app.Status()))
		}
	}
	app, err = streams.New(topology, streams.Config{AppID: o.App, Brokers: o.Brokers, StateDir: o.StateDir, Guarantee: guarantee, Client: clients[o.Client],
		CommitInterval: o.Commit, SessionTimeout: o.Session, TransactionTimeout: o.Transaction, StartTimeout: o.Start, Workers: o.Workers, Logger: log, StateListener: listener})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = app.Run(ctx)
	log.Info("end", "run", o.Name, "error", err)
	return err
}
