package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// unit is what is produced once: the n-th repetition of a content.
type unit struct {
	content
	repetition int
}

// The headers of a line.
const (
	unitHeader = "unit" // of what it is a line
	nextHeader = "next" // the number of the line that comes after it
)

// String is the header's form.
func (u unit) String() string {
	return fmt.Sprintf("%s %d %d %q", u.sha, u.size, u.repetition, u.follows)
}

func parseUnit(s string) (u unit, err error) {
	_, err = fmt.Sscanf(s, "%s %d %d %q", &u.sha, &u.size, &u.repetition, &u.follows)
	return u, err
}

// input is a file that is being produced.
type input struct {
	unit
	path   string
	header []byte // of the unit
	file   *os.File
	lines  *lineReader
	number int64 // of the line read last
}

func openInput(s source, u unit) (*input, error) {
	in := &input{unit: u, path: s.path, header: []byte(u.String())}
	if s.path == stdin {
		return in, nil
	}
	var err error
	in.file, err = os.Open(s.path)
	return in, err
}

func (in *input) close() { _ = in.file.Close() } // it was only read

// record is the Kafka record of a line. The lines of a file are spread over the partitions,
// whatever their key.
func (p *producer) record(in *input, line []byte) kafka.Record {
	return kafka.Record{
		Topic:     p.o.topics.lines,
		Partition: int32(in.number % int64(p.partitions)),
		Timestamp: time.Now().UnixMilli(),
		Key:       []byte(in.path),
		Value:     bytes.Clone(line), // of the reader's buffer
		Headers:   []kafka.Header{{Key: unitHeader, Value: in.header}, {Key: nextHeader, Value: strconv.AppendInt(nil, in.number+1, 10)}},
	}
}

// readDone reads the topic for how far each unit is committed.
func (p *producer) readDone(ctx context.Context) error {
	all, err := p.place.partitions(ctx, p.o.topics.lines)
	if err != nil {
		return err
	}
	p.partitions = int32(len(all))
	p.done, p.known = map[unit]int64{}, map[string][]content{}
	units := map[string]unit{}
	return p.place.readTopic(ctx, p.o.topics.lines, func(r *kafka.Record) error {
		var name, text []byte
		for _, h := range r.Headers {
			switch h.Key {
			case unitHeader:
				name = h.Value
			case nextHeader:
				text = h.Value
			}
		}
		if name == nil || text == nil {
			return nil // another program's line
		}
		u, ok := units[string(name)]
		if !ok {
			var err error
			if u, err = parseUnit(string(name)); err != nil {
				return fmt.Errorf("header %s is %q: %w", unitHeader, name, err)
			}
			units[string(name)] = u
		}
		next, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return fmt.Errorf("header %s: %w", nextHeader, err)
		}
		p.done[u] = max(p.done[u], next)
		if path := string(r.Key); !slices.Contains(p.known[path], u.content) {
			p.known[path] = append(p.known[path], u.content)
		}
		return nil
	})
}
