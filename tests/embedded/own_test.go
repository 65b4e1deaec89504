package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// ownProducer asks a child to write its outputs with a producer of its own.
const ownProducer = "own"

// own is a producer of the user's. It is slow on purpose: a commit that does not wait for it is far ahead of it.
type own interface {
	send(topic, key, value string)
	// flush returns when everything that was sent is acknowledged, with what became of it.
	flush(context.Context) error
	close()
}

// slowly is how long a producer waits for more: many commit intervals.
const slowly = 300 * time.Millisecond

// ownProducers, by the client's name: those of this build.
var ownProducers = map[string]func(brokers string) (own, error){"franz": openFranzOwn}

// openOwn opens a producer of the client that a door is for.
func openOwn(door, brokers string) (own, error) {
	client, _, _ := strings.Cut(door, "-")
	open, ok := ownProducers[client]
	if !ok {
		return nil, fmt.Errorf("no producer for door %s", door)
	}
	return open(brokers)
}

// countWith is count with outputs that are not the host's.
func countWith(p own, t *embedded.Task, key, out string) error {
	s := counts.In(t)
	n, _, err := s.Get(key)
	if err != nil {
		return err
	}
	if err := s.Put(key, n+1); err != nil {
		return err
	}
	p.send(out, key, strconv.FormatInt(n+1, 10))
	t.BeforeCommit(p.flush)
	return nil
}

// fates are what became of what was sent.
type fates struct {
	mu      sync.Mutex
	waiting int
	failed  error // since take
}

func (f *fates) sent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
}

func (f *fates) told(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	f.failed = errors.Join(f.failed, err)
}

// take tells what failed, and whether all is known.
func (f *fates) take() (known bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting > 0 {
		return false, nil
	}
	err, f.failed = f.failed, nil
	return true, err
}

type franzOwn struct {
	client *kgo.Client
	fates
}

func openFranzOwn(brokers string) (own, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.ProducerLinger(slowly))
	if err != nil {
		return nil, err
	}
	return &franzOwn{client: cl}, nil
}

func (p *franzOwn) send(topic, key, value string) {
	p.sent()
	p.client.Produce(context.Background(), &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}, func(_ *kgo.Record, err error) { p.told(err) })
}

func (p *franzOwn) flush(ctx context.Context) error {
	for {
		if known, err := p.take(); known {
			return err
		}
		if err := p.client.Flush(ctx); err != nil {
			return err
		}
	}
}

func (p *franzOwn) close() { p.client.Close() }

// Outputs of a producer of the user's own, which BeforeCommit waits for, survive kill -9 like the host's: none is lost, under either guarantee.
func TestOwnProducer(t *testing.T) {
	t.Parallel()
	r := testseed.New(t)
	for _, d := range rangeDoors {
		t.Run(d.name, func(t *testing.T) {
			underBoth(t, r, func(t *testing.T, r *rand.Rand, g embedded.Guarantee) {
				newWorld(t, d).torture(r, ordeal{door: d, g: g, rounds: 3, bury: true, own: true})
			})
		})
	}
}
