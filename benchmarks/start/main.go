// Command start measures how long an application takes from the start of its process until it runs,
// with the state of many tasks on disk that need no restore:
//
//	start [-tasks 1000] [-rounds 3] [-workers 2] [-brokers ADDR] [-exactly-once] [-cpuprofile FILE]
//
// Without -brokers it runs against a broker of its own, in a child process. The application is
// another child: its CPU time is its own, not the broker's. One line of JSON for each start.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
)

// setup is what the parent and its children agree on.
type setup struct {
	tasks, workers int
	brokers, app   string
	stateDir       string
	exactlyOnce    bool
	profile        string
	fill           bool
	begun          int64 // when the process was started, in Unix nanoseconds; 0 in the parent
}

func main() {
	embeddedbroker.Main()
	s := setup{}
	rounds := flag.Int("rounds", 3, "how many starts to measure")
	flag.IntVar(&s.tasks, "tasks", 1000, "partitions of the input, each a task with a store")
	flag.IntVar(&s.workers, "workers", 2, "workers of the application")
	flag.StringVar(&s.brokers, "brokers", "", "address of a broker; empty = one of its own")
	flag.BoolVar(&s.exactlyOnce, "exactly-once", false, "exactly-once outputs")
	flag.StringVar(&s.profile, "cpuprofile", "", "write a CPU profile of the last start to this file")
	flag.BoolVar(&s.fill, "fill", false, "for the program itself: make the state")
	flag.StringVar(&s.app, "app", "start-"+strconv.FormatInt(time.Now().UnixNano(), 36), "for the program itself: application id")
	flag.StringVar(&s.stateDir, "state", "", "for the program itself: state directory")
	flag.Int64Var(&s.begun, "begun", 0, "for the program itself: when it was started")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := func() error { return measure(ctx, s, *rounds, os.Stdout) }
	if s.begun != 0 {
		run = func() error { return runApplication(ctx, s) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

// measure makes the state and starts the application again and again; each start writes a line to out.
func measure(ctx context.Context, s setup, rounds int, out io.Writer) (err error) {
	work, err := os.MkdirTemp("", "tidemark-start")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	s.stateDir = filepath.Join(work, "state")
	if s.brokers == "" {
		b, err := embeddedbroker.Start(ctx, embeddedbroker.Options{Dir: filepath.Join(work, "broker")})
		if err != nil {
			return err
		}
		defer b.Close()
		s.brokers = b.Addr()
	}
	if err := createTopic(ctx, s); err != nil {
		return err
	}
	fill := s
	fill.fill, fill.profile = true, ""
	if err := child(ctx, fill, out); err != nil {
		return fmt.Errorf("make the state: %w", err)
	}
	profile := s.profile
	for round := 1; round <= rounds; round++ {
		if s.profile = ""; round == rounds {
			s.profile = profile
		}
		if err := child(ctx, s, out); err != nil {
			return fmt.Errorf("start %d: %w", round, err)
		}
	}
	return nil
}

func createTopic(ctx context.Context, s setup) (err error) {
	admin, err := franz.Client{}.NewAdmin(kafka.Settings{Brokers: []string{s.brokers}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(ctx)) }()
	return admin.CreateTopics(ctx, kafka.NewTopic{Name: s.input(), Partitions: int32(s.tasks), Replication: 1})
}

func (s setup) input() string { return s.app + "-in" }

// child runs the application in a process of its own.
func child(ctx context.Context, s setup, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self,
		"-tasks", strconv.Itoa(s.tasks), "-workers", strconv.Itoa(s.workers), "-brokers", s.brokers, "-app", s.app, "-state", s.stateDir,
		"-exactly-once="+strconv.FormatBool(s.exactlyOnce), "-fill="+strconv.FormatBool(s.fill), "-cpuprofile", s.profile,
		"-begun", strconv.FormatInt(time.Now().UnixNano(), 10))
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}
