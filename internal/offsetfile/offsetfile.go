package offsetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unknown is what Kafka Streams writes for a store that is clean and whose offset it
// does not know. (-1, -2 and -3 mean other things to it and never stand in its files.)
const Unknown = -4

// maxBytes is far above what an application can have: a million lines of long topic names.
const maxBytes = 128 << 20

// Line is one entry of an offset file, with the number as it stands there.
type Line struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Content is what an offset file holds.
type Content struct {
	// Entries are in the order of the file. Their offsets are not negative, or [Unknown].
	Entries []Line
	// Skipped are lines with another negative number. Kafka Streams ignores them too.
	Skipped []Line
}

// Parse reads a file. An error of r is given as it is; any other says what is wrong with the content.
func Parse(r io.Reader) (Content, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return Content{}, err
	}
	if len(text) > maxBytes {
		return Content{}, fmt.Errorf("larger than %d MiB: not an offset file", maxBytes>>20)
	}
	l := lines{rest: text}
	if err := readVersion(&l); err != nil {
		return Content{}, err
	}
	count, err := readCount(&l)
	if err != nil {
		return Content{}, err
	}
	return readEntries(&l, count)
}

func readVersion(l *lines) error {
	text, ok := l.next()
	if !ok {
		return errors.New("the file is empty")
	}
	version, err := parseNumber(text, 32)
	if err != nil {
		return fmt.Errorf("line 1: version %w", err)
	}
	if version != 0 {
		return fmt.Errorf("line 1: unknown version %d, 0 is the only one that Kafka Streams wrote", version)
	}
	return nil
}

func readCount(l *lines) (int64, error) {
	text, ok := l.next()
	if !ok {
		return 0, errors.New("the file ends behind the version")
	}
	count, err := parseNumber(text, 32)
	if err != nil {
		return 0, fmt.Errorf("line 2: number of entries %w", err)
	}
	return count, nil
}

// readEntries never allocates by the count that the file claims.
func readEntries(l *lines, count int64) (f Content, err error) {
	type topicPartition struct {
		topic     string
		partition int32
	}
	seen := map[topicPartition]struct{}{}
	var topic string // of the line before: most files name few topics
	for {
		text, ok := l.next()
		if !ok {
			break
		}
		e, err := parseEntry(text, topic)
		if err != nil {
			return Content{}, fmt.Errorf("line %d: %w", l.number, err)
		}
		topic = e.Topic
		id := topicPartition{e.Topic, e.Partition}
		if _, twice := seen[id]; twice {
			return Content{}, fmt.Errorf("line %d: %s occurs twice", l.number, e.TopicPartition())
		}
		seen[id] = struct{}{}
		if e.Offset < 0 && e.Offset != Unknown {
			f.Skipped = append(f.Skipped, e)
			continue
		}
		f.Entries = append(f.Entries, e)
	}
	if int64(len(seen)) != count {
		return Content{}, fmt.Errorf("line 2 says %d entries, the file holds %d: it may be cut off", count, len(seen))
	}
	return f, nil
}

func parseEntry(text []byte, lastTopic string) (Line, error) {
	if !utf8.Valid(text) {
		return Line{}, errors.New("not valid UTF-8")
	}
	fields := bytes.FieldsFunc(text, isSpace)
	if len(fields) != 3 || isSpace(rune(text[0])) {
		return Line{}, fmt.Errorf("%s is not topic, partition and offset", Shown(text))
	}
	partition, err := parseNumber(fields[1], 32)
	if err != nil {
		return Line{}, fmt.Errorf("partition %w", err)
	}
	if partition < 0 {
		return Line{}, fmt.Errorf("partition %d is negative", partition)
	}
	offset, err := parseNumber(fields[2], 64)
	if err != nil {
		return Line{}, fmt.Errorf("offset %w", err)
	}
	if string(fields[0]) != lastTopic { // does not allocate
		lastTopic = string(fields[0])
	}
	return Line{Topic: lastTopic, Partition: int32(partition), Offset: offset}, nil
}

// parseNumber takes what Java's parseInt takes, but only ASCII digits: no white space, a
// sign before the digits, no underscore or prefix.
func parseNumber(text []byte, bits int) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large", Shown(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number", Shown(text))
	}
	return n, nil
}

// isSpace is Java's \s, which separates the fields: no Unicode spaces.
func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r'
}

// lines gives the lines as Java's readLine does: ended by \n, \r or \r\n, the last one
// possibly by the end of the file.
type lines struct {
	rest   []byte
	number int // of the line given last, from 1
}

func (l *lines) next() (text []byte, ok bool) {
	if len(l.rest) == 0 {
		return nil, false
	}
	l.number++
	i := bytes.IndexAny(l.rest, "\r\n")
	if i < 0 {
		text, l.rest = l.rest, nil
		return text, true
	}
	text = l.rest[:i]
	end := i + 1
	if l.rest[i] == '\r' && end < len(l.rest) && l.rest[end] == '\n' {
		end++
	}
	l.rest = l.rest[end:]
	return text, true
}

// Shown quotes what stands in a file, short enough for a message.
func Shown(text []byte) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// TopicPartition is the entry's topic partition as Kafka's tools show it.
func (l Line) TopicPartition() string { return fmt.Sprintf("%s-%d", l.Topic, l.Partition) }

// Format gives the content of a file with these lines, as Kafka Streams writes it.
func Format(lines ...Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "0\n%d\n", len(lines))
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %d %d\n", l.Topic, l.Partition, l.Offset)
	}
	return b.String()
}
