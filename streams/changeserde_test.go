package streams

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
)

func newAndOld(n, o string) change[string] {
	return change[string]{new: n, old: o, hasNew: true, hasOld: true}
}

// TestChangesAreKafkaStreams: the bytes are those of ChangedSerializer of Kafka Streams 4.3.1.
func TestChangesAreKafkaStreams(t *testing.T) {
	s := changeSerde[string]{serde.String}
	for _, test := range []struct {
		c    change[string]
		want string
	}{
		{change[string]{new: "abc", hasNew: true}, "61626301"},
		{change[string]{old: "xy", hasOld: true}, "787900"},
		{newAndOld("abc", "xy"), "06616263787902"},
		{newAndOld("", ""), "0002"},
		{newAndOld(strings.Repeat("a", 100), "b"), "c801" + strings.Repeat("61", 100) + "6202"},
	} {
		b, err := s.Append([]byte("before"), test.c)
		if got := hex.EncodeToString(b[len("before"):]); got != test.want || err != nil {
			t.Errorf("%+v: got %s, want %s, %v", test.c, got, test.want, err)
		}
		if c, err := s.Decode(b[len("before"):]); c != test.c || err != nil {
			t.Errorf("%s is %+v, %v", test.want, c, err)
		}
	}
	for text, want := range map[string]change[string]{"6101" + "04": {new: "a", hasNew: true}, "6100" + "03": {old: "a", hasOld: true}, "0261" + "62" + "01" + "05": newAndOld("a", "b")} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := s.Decode(b); c != want || err != nil {
			t.Errorf("%s is %+v, %v; want %+v", text, c, err, want)
		}
	}
	if _, err := s.Append(nil, change[string]{}); err == nil {
		t.Error("an empty change was written")
	}
}

func TestChangesThatCannotBeRead(t *testing.T) {
	s := changeSerde[int64]{serde.Int64}
	for _, text := range []string{"", "03", "ff", "02", "0102", "8002", "1002", "61" + "01", "61" + "00", "10" + strings.Repeat("00", 8) + "0102"} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := s.Decode(b); err == nil {
			t.Errorf("%q is %+v", text, c)
		}
	}
}

func FuzzChange(f *testing.F) {
	f.Add([]byte("61626301"))
	f.Add([]byte{6, 'a', 'b', 'c', 'x', 'y', 2})
	s := changeSerde[string]{serde.String}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := s.Decode(b)
		if err != nil {
			return
		}
		again, err := s.Append(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := s.Decode(again); d != c || err != nil { // the newer form becomes the older one
			t.Errorf("%q: %+v, then %+v, %v", b, c, d, err)
		}
	})
}

// brokenSerde fails on a value that says so.
type brokenSerde struct{ serde.Serde[string] }

func (brokenSerde) Name() string { return "broken" }

func (s brokenSerde) Append(dst []byte, v string) ([]byte, error) {
	if v == "broken" {
		return dst, errors.New("broken")
	}
	return s.Serde.Append(dst, v)
}

func TestChangesThatCannotBeWritten(t *testing.T) {
	s := changeSerde[string]{brokenSerde{serde.String}}
	for _, c := range []change[string]{newAndOld("broken", ""), newAndOld("", "broken"), {new: "broken", hasNew: true}, {old: "broken", hasOld: true}} {
		if _, err := s.Append(nil, c); err == nil {
			t.Errorf("%+v was written", c)
		}
	}
}
