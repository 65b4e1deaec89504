package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/examples/internal/command"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

const usage = `usage: wordcount [flags] [FILE...]

Counts the words of files; without a FILE those of Tidemark's own README and docs. The FILE
"-" is standard input, which cannot be resumed. What a data folder (or a broker) has counted
before is part of the result; a file that it knows by its content is not counted again, and
of one that has grown only what is new. A word is a run of ASCII letters and digits, in lower
case. To go on after a kill use the same flags again, --repeat too. (Committed offsets count the
markers of transactions too, and "records" are lines and words together.)

flags:`

// options is the command line.
type options struct {
	data      string
	brokers   []string
	client    kafka.Client
	guarantee streams.Guarantee
	top       int
	all       bool
	repeat    int
	follow    bool
	verbose   bool
	progress  time.Duration
	commit    time.Duration
	app       string
	topics    topics
	files     []string
}

// topics are the names of the user's topics.
type topics struct{ lines, counts string }

// parseFlags reads the command line. On --help, and with a flag that is wrong, it ends the program.
func parseFlags(args []string) (options, error) {
	var o options
	var brokers, client, guarantee string
	f := flag.NewFlagSet("wordcount", flag.ExitOnError)
	f.StringVar(&o.data, "data", "", "`folder` for the broker's log and the state; it is kept (default: a temporary one)")
	f.StringVar(&brokers, "brokers", "", "use a real broker at `host:port` instead of the embedded one")
	f.StringVar(&client, "client", "franz", "Kafka client: franz or confluent")
	f.StringVar(&guarantee, "guarantee", "at-least-once", "at-least-once or exactly-once; the counts are exact in both")
	f.IntVar(&o.top, "top", 0, "print the `n` most frequent words (default 20)")
	f.BoolVar(&o.all, "all", false, "print every word as count, tab, word, and nothing else on standard output")
	f.IntVar(&o.repeat, "repeat", 1, "count the files `n` times over")
	f.BoolVar(&o.follow, "follow", false, "go on waiting for appended lines until interrupted")
	f.StringVar(&o.app, "app", "wordcount", "application `id`; one of your own has topics of its own")
	f.DurationVar(&o.commit, "commit-interval", 0, "time between commits (default 100ms)")
	f.DurationVar(&o.progress, "progress", 0, "time between progress lines (default 1s, on a terminal 200ms)")
	f.BoolVar(&o.verbose, "verbose", false, "print what the application logs")
	command.Parse(f, usage, args)
	if brokers != "" {
		o.brokers = strings.Split(brokers, ",")
	}
	o.topics = topics{"lines", "counts"}
	if o.app != "wordcount" {
		o.topics = topics{o.app + ".lines", o.app + ".counts"}
	}
	var err error
	if err := errors.Join(o.choose(client, guarantee), o.checkNumbers(f.Args()), o.checkApp()); err != nil {
		return o, err
	}
	o.files, err = chooseFiles(f.Args())
	return o, err
}

// choose turns words into what they stand for.
func (o *options) choose(client, guarantee string) error {
	var errs []error
	switch client {
	case "franz":
		o.client = franz.Client{}
	case "confluent":
		o.client = confluent.Client{}
	default:
		errs = append(errs, fmt.Errorf("--client %q: use franz or confluent", client))
	}
	switch guarantee {
	case streams.AtLeastOnce.String():
	case streams.ExactlyOnce.String():
		o.guarantee = streams.ExactlyOnce
	default:
		errs = append(errs, fmt.Errorf("--guarantee %q: use at-least-once or exactly-once", guarantee))
	}
	return errors.Join(errs...)
}

// checkApp reports what the application's configuration would refuse, before a broker is started.
func (o *options) checkApp() error {
	err := streams.Config{AppID: o.app, CommitInterval: o.commit, Brokers: []string{"later:1"}, StateDir: "later"}.Validate()
	if err != nil {
		return fmt.Errorf("--app %q, --commit-interval %v: %w", o.app, o.commit, err)
	}
	return nil
}

// checkNumbers reports numbers that make no sense, and flags that exclude each other.
func (o *options) checkNumbers(files []string) error {
	var errs []error
	for _, name := range files {
		if strings.HasPrefix(name, "-") && name != stdin {
			errs = append(errs, fmt.Errorf("%s behind a file: flags go before the files", name))
		}
	}
	if o.all && o.top != 0 {
		errs = append(errs, errors.New("--all and --top exclude each other"))
	}
	if o.top == 0 {
		o.top = 20
	}
	if o.top < 0 {
		errs = append(errs, fmt.Errorf("--top %d: it must be at least 1", o.top))
	}
	if o.repeat < 1 {
		errs = append(errs, fmt.Errorf("--repeat %d: it must be at least 1", o.repeat))
	}
	if o.follow && o.repeat > 1 {
		errs = append(errs, errors.New("--follow and --repeat exclude each other"))
	}
	if o.follow && slices.Contains(files, stdin) {
		errs = append(errs, errors.New("--follow needs files: standard input ends by itself"))
	}
	if o.repeat > 1 && slices.Contains(files, stdin) {
		errs = append(errs, errors.New("--repeat needs files that can be read again, which standard input is not"))
	}
	return errors.Join(errs...)
}

// chooseFiles checks that the files can be read, all at once. Without any it takes the
// documentation of the source tree around the working directory.
func chooseFiles(given []string) ([]string, error) {
	if len(given) == 0 {
		return ownDocs()
	}
	var errs []error
	for _, name := range given {
		if name == stdin {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			errs = append(errs, err)
		} else if !info.Mode().IsRegular() {
			errs = append(errs, fmt.Errorf("%s is not a regular file; a pipe can be counted as standard input (FILE -)", name))
		}
	}
	return given, errors.Join(errs...)
}

// ownDocs finds README.md and docs/*.md of Tidemark's source tree, above the working
// directory: a program that was built and moved has no other way to know where they are.
func ownDocs() ([]string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if mod, rerr := os.ReadFile(filepath.Join(dir, "go.mod")); rerr == nil && strings.HasPrefix(string(mod), "module github.com/tidemark-streams/tidemark\n") {
			docs, gerr := filepath.Glob(filepath.Join(dir, "docs", "*.md"))
			return append([]string{filepath.Join(dir, "README.md")}, docs...), gerr
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return nil, errors.Join(err, errors.New("no FILE was given, and the working directory is not in Tidemark's source tree, whose README and docs would be counted: name the files to count"))
}
