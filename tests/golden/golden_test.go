package golden

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/streams/streamstest"
)

// differs are the cases in which Tidemark does something else on purpose, with the reason.
var differs = map[string]string{}

func TestCases(t *testing.T) {
	for _, g := range load(t, *casesDir) {
		t.Run(g.Group, func(t *testing.T) {
			for _, c := range g.Cases {
				_, name, _ := cut(c.Name)
				t.Run(name, func(t *testing.T) {
					topology, stores, missing, err := tryBuild(&c)
					switch {
					case missing != "":
						t.Skipf("needs %s", missing)
					case differs[c.Name] != "":
						t.Skip(differs[c.Name])
					}
					c.run(t, topology, stores, err)
				})
			}
		})
	}
}

// cut divides the name of a case into group and name.
func cut(name string) (group, rest string, ok bool) {
	i := slices.Index([]byte(name), '/')
	return name[:i], name[i+1:], true
}

// tryBuild builds a case, or says what does not exist.
func tryBuild(c *goldenCase) (t *streams.Topology, stores map[string]store, missing string, err error) {
	defer func() {
		if p := recover(); p != nil {
			u, ok := p.(unsupported)
			if !ok {
				panic(p)
			}
			missing = u.what
		}
	}()
	t, stores, err = build(c)
	return t, stores, "", err
}

// run feeds the steps one by one and compares after each.
func (c *goldenCase) run(t *testing.T, topology *streams.Topology, stores map[string]store, err error) {
	if c.Error != nil && c.Error.Step == "build" {
		if err == nil {
			t.Fatalf("it was built; want an error: %s", c.Error.Message)
		}
		t.Log(err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	d := streamstest.New(t, topology, streamstest.Config{Start: time.UnixMilli(c.Config.WallClock), TimestampExtractor: extractor(c.Config.Timestamps), Caching: c.Config.Cache != 0})
	outputs := map[string]*streamstest.OutputTopic[any, any]{}
	for _, topic := range topicsOf(c, "to", "sink") {
		outputs[topic] = streamstest.Output(d, topic, dyn, dyn)
	}
	for i, s := range c.Steps {
		before := d.Dropped()
		err := d.Try(func() { c.feed(d, s) })
		if c.Error != nil && c.Error.Step == float64(i) {
			if err == nil {
				t.Fatalf("step %d did not fail; want %s", i, c.Error.Message)
			}
			t.Log(err)
			return
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for topic, o := range outputs {
			if got, want := lines(read(o)), lines(s.Out[topic]); got != want {
				t.Errorf("step %d, %s: topic %s: got\n%swant\n%s", i, s.describe(), topic, got, want)
			}
		}
		if got := d.Dropped() - before; got != s.Dropped {
			t.Errorf("step %d, %s: %d records were dropped, want %d (%v)", i, s.describe(), got, s.Dropped, d.DroppedBy())
		}
		if t.Failed() {
			return
		}
	}
	c.compareStores(t, d, stores)
	if d.Dropped() != c.Dropped {
		t.Errorf("%d records were dropped, want %d (%v)", d.Dropped(), c.Dropped, d.DroppedBy())
	}
}

func (s step) describe() string {
	switch {
	case s.Advance != nil:
		return fmt.Sprintf("advance %d", *s.Advance)
	case s.Batch != nil:
		return fmt.Sprintf("batch of %d", len(s.Batch))
	}
	return s.In + " " + s.String()
}

func (c *goldenCase) feed(d *streamstest.Driver, s step) {
	switch {
	case s.Advance != nil:
		d.Advance(time.Duration(*s.Advance) * time.Millisecond)
	case s.Batch != nil:
		d.Batch(func() {
			for _, r := range s.Batch {
				pipe(d, r)
			}
		})
	default:
		pipe(d, s.record)
	}
}

func pipe(d *streamstest.Driver, r record) {
	var headers []kafka.Header
	for _, h := range r.H {
		headers = append(headers, kafka.Header{Key: h[0], Value: []byte(h[1])})
	}
	streamstest.Input(d, r.In, dyn, dyn).Pipe(r.K.v, r.V.v, time.UnixMilli(r.T), headers...)
}

func read(o *streamstest.OutputTopic[any, any]) (all []record) {
	for _, r := range o.ReadAll() {
		x := record{K: datum{r.Key}, V: datum{r.Value}, T: r.Timestamp.UnixMilli()}
		for _, h := range r.Headers {
			x.H = append(x.H, [2]string{h.Key, string(h.Value)})
		}
		all = append(all, x)
	}
	return all
}

func (c *goldenCase) compareStores(t *testing.T, d *streamstest.Driver, stores map[string]store) {
	for name, want := range c.Stores {
		s, ok := stores[name]
		if !ok {
			t.Errorf("store %s: not known", name)
			continue
		}
		rows, err := s.rows(d)
		if err != nil {
			t.Fatalf("store %s: %v", name, err)
		}
		if got, want := lines(rows), lines(want.Rows); got != want {
			t.Errorf("store %s: got\n%swant\n%s", name, got, want)
		}
	}
}

func extractor(name string) streams.TimestampExtractor {
	switch name {
	case "skipInvalid":
		return func(r *kafka.Record, _ time.Time) (time.Time, error) { return time.UnixMilli(r.Timestamp), nil }
	case "partitionTime":
		return func(r *kafka.Record, partitionTime time.Time) (time.Time, error) {
			switch {
			case r.Timestamp >= 0:
				return time.UnixMilli(r.Timestamp), nil
			case partitionTime.IsZero():
				return time.Time{}, errors.New("there is no time yet")
			}
			return partitionTime, nil
		}
	}
	return nil
}

var _ processor.StoreContext = (*streamstest.Driver)(nil)
