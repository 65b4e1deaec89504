package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/kafka"
)

// place is what the program works in: the data folder, a broker, and the topics.
type place struct {
	brokers   []string
	state     string // the application's state directory
	data      string
	temporary bool
	embedded  *embeddedbroker.Broker // nil with --brokers
	client    kafka.Client
	settings  kafka.Settings
	admin     kafka.Admin
	show      *display
}

func openPlace(ctx context.Context, o options, show *display) (_ *place, err error) {
	p := &place{data: o.data, client: o.client, brokers: o.brokers, show: show}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(true)) // nothing was counted: nothing to go on with
		}
	}()
	if err := p.openData(); err != nil {
		return nil, err
	}
	if err := p.startBroker(ctx); err != nil {
		return nil, err
	}
	p.settings = kafka.Settings{Brokers: p.brokers, ClientID: "wordcount", Logger: show.logger(o.verbose)}
	if p.admin, err = p.client.NewAdmin(p.settings); err != nil {
		return nil, err
	}
	return p, p.createTopics(ctx, o.topics)
}

func (p *place) openData() error {
	if p.data == "" {
		dir, err := os.MkdirTemp("", "wordcount-")
		if err != nil {
			return fmt.Errorf("make a temporary data folder (--data names one): %w", err)
		}
		p.data, p.temporary = dir, true
		p.show.printf("data: %s (temporary: removed when everything is counted; --data %s goes on after a kill)", dir, dir)
	} else {
		p.show.printf("data: %s", p.data)
	}
	p.state = filepath.Join(p.data, "state")
	return nil
}

func (p *place) startBroker(ctx context.Context) (err error) {
	if len(p.brokers) > 0 {
		p.show.printf("broker: %v", p.brokers)
		return nil
	}
	if p.embedded, err = embeddedbroker.Start(ctx, embeddedbroker.Options{Dir: filepath.Join(p.data, "broker")}); err != nil {
		return err
	}
	p.brokers = []string{p.embedded.Addr()}
	p.show.printf("broker: embedded, %s, pid %d", p.embedded.Addr(), p.embedded.PID())
	if p.embedded.Unclean() {
		p.show.printf("warning: the embedded broker itself was killed in its last run; its log may be torn, and the counts wrong")
	}
	return nil
}

// createTopics creates the user's topics where they are missing.
func (p *place) createTopics(ctx context.Context, names topics) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	have, err := p.admin.Topics(ctx, names.lines, names.counts)
	if err != nil {
		return err
	}
	for _, t := range []kafka.NewTopic{
		// Kept for ever: the topic says which lines were produced.
		{Name: names.lines, Partitions: 4, Replication: -1, Configs: map[string]string{"retention.ms": "-1"}},
		{Name: names.counts, Partitions: 4, Replication: -1, Configs: map[string]string{"cleanup.policy": "compact"}},
	} {
		if _, ok := have[t.Name]; ok {
			continue
		}
		if err := p.admin.CreateTopics(ctx, t); err != nil && !kafka.IsClass(err, kafka.ClassTopicExists) {
			return fmt.Errorf("create topic %s: %w", t.Name, err)
		}
	}
	return nil
}

// onBrokerExit calls cancel if the embedded broker ends before stop is called.
func (p *place) onBrokerExit(cancel context.CancelCauseFunc) (stop func()) {
	if p.embedded == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-p.embedded.Exited():
			cancel(errors.New("the embedded broker ended"))
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// close ends what was opened. A temporary folder is removed unless the run ended before its
// time: then it can be resumed.
func (p *place) close(finished bool) error {
	var errs []error
	if p.admin != nil {
		errs = append(errs, closeClient(p.admin))
	}
	if p.embedded != nil {
		errs = append(errs, p.embedded.Close())
	}
	if p.temporary && finished {
		errs = append(errs, os.RemoveAll(p.data))
	}
	return errors.Join(errs...)
}

func closeClient(c kafka.Closer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.Close(ctx)
}
