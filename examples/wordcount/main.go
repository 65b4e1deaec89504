// Wordcount counts the words of files with Tidemark, and goes on where it was when it is
// killed and started again.
//
//	go run ./examples/wordcount                     # the words of this project's README and docs
//	wordcount --data /tmp/words --repeat 100 FILE   # something to kill; run it again to go on
//
// A word is a maximal run of the letters and digits of ASCII, in lower case. The files' lines
// go into the topic "lines", the counts come out of the topic "counts". Every line is
// produced once and counted once, whatever is killed and as often as it is (the program: its
// embedded broker is a child process, which closes by itself when its parent is gone).
//
// Owns: the data folder (broker's log and state directory), the lines it produced.
// Never: counts a file twice that it knows by its content.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/examples/internal/command"
	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// topology is the whole of the stream application.
func topology(names topics) (*streams.Topology, error) {
	b := streams.NewBuilder()
	lines := streams.Stream(b, names.lines, streams.With(serde.String, serde.String))
	words := streams.FlatMapValues(lines, words, serde.String)
	counts := streams.GroupBy(words, func(_, word string) string { return word }, serde.String).
		Count(streams.Materialized{Name: storeName})
	counts.ToStream().To(names.counts)
	return b.Build()
}

const storeName = "counts"

// words divides a line. It splits first: lower-casing the line could make ASCII letters of
// others (the Kelvin sign).
func words(line string) []string {
	found := strings.FieldsFunc(line, func(r rune) bool { return !isWord(r) })
	for i, w := range found {
		found[i] = strings.ToLower(w)
	}
	return found
}

func isWord(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' }

// errInterrupted is the end of a run that was told to stop before it had finished.
var errInterrupted = errors.New("interrupted: what was counted is kept, run it again to go on")

func main() {
	embeddedbroker.Main() // in the broker's child process this does not return

	ctx, stop := command.Context()
	defer stop()
	o, err := parseFlags(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(2)
	}
	err = wordcount(ctx, o)
	switch {
	case err == nil:
	case errors.Is(err, errInterrupted), command.Interrupted(ctx, err):
		fmt.Fprintln(os.Stderr, "wordcount:", errInterrupted)
		if o.data == "" && o.brokers == nil {
			fmt.Fprintln(os.Stderr, "wordcount: to go on, add --data with the folder named above")
		}
		os.Exit(command.CodeInterrupted)
	default:
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

// wordcount runs the program: a place to work in, the application beside the producer of its
// input, and the results when both are done.
func wordcount(ctx context.Context, o options) (err error) {
	show := newDisplay(os.Stderr)
	defer show.close()
	show.printf("wordcount: pid %d, kill -9 it when you like", os.Getpid())
	p, err := openPlace(ctx, o, show)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(err == nil)) }()
	topology, err := topology(o.topics)
	if err != nil {
		return err
	}
	app, err := streams.New(topology, streams.Config{
		AppID:          o.app,
		Brokers:        p.brokers,
		StateDir:       p.state,
		Guarantee:      o.guarantee,
		Client:         o.client,
		CommitInterval: o.commit,
		Logger:         show.logger(o.verbose),
	})
	if err != nil {
		return err
	}
	if err := count(ctx, o, p, app, topology); err != nil {
		return err
	}
	return printResults(ctx, o, p)
}

// count runs the application until everything in the files is produced, processed and
// committed, or, with --follow, until the program is told to stop.
func count(ctx context.Context, o options, p *place, app *streams.App, topology *streams.Topology) error {
	before, err := inputEnds(ctx, o, p, topology)
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends when Run does: Close waits for that
		// A signal ends the work first; then Close lets the application commit.
		err := app.Run(context.WithoutCancel(ctx))
		cancel(fmt.Errorf("the application ended: %w", err))
	}()
	defer p.onBrokerExit(cancel)()
	lines := newProducer(o, p)
	watch := startProgress(app, lines, p.show, o, before)
	defer watch.close()

	err = awaitTasks(work, app, p.show)
	if err == nil {
		err = lines.run(work)
	}
	if err == nil {
		err = app.CaughtUp(work)
	}
	if err != nil && work.Err() != nil {
		err = context.Cause(work)
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer done()
	if cerr := app.Close(closing); cerr != nil {
		return cerr // the application's own error says why the rest failed
	}
	switch {
	case err == nil || o.follow && ctx.Err() != nil:
		return nil // --follow ends by a signal
	case ctx.Err() != nil:
		return errInterrupted
	}
	return err
}

// awaitTasks waits until this process runs the tasks: a run that has nothing to count shall
// bring its state up to date all the same, and one that is refused (another process uses the
// data folder) must not take the producing over. While a process elsewhere runs the tasks it
// does not wait for ever.
func awaitTasks(ctx context.Context, app *streams.App, show *display) error {
	others := time.NewTimer(20 * time.Second) // the place of a dead process is free after 10
	defer others.Stop()
	for {
		changed := app.Changed()
		switch app.State() {
		case streams.Created, streams.Starting:
		case streams.Restoring:
			others.Stop()
		default:
			return nil
		}
		select {
		case <-changed:
		case <-others.C:
			show.printf("another process runs the tasks: this one does not wait for them")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
