package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// group is a file of cases.
type group struct {
	Group string
	Cases []goldenCase
}

type goldenCase struct {
	Name     string
	Quirk    string
	Config   config
	Topology []node
	Steps    []step
	Stores   map[string]storeRows
	Dropped  int
	Error    *failure
	// InMemoryDiffers names what depends on the store engine even in Kafka Streams.
	InMemoryDiffers []string
}

type config struct {
	Cache          int64
	WallClock      int64
	Timestamps     string
	Optimize       any
	OnProcessError string
}

type failure struct {
	Step    any // "build" or a number
	Message string
}

type step struct {
	record
	Batch   []record
	Advance *int64
	Out     map[string][]record
	Dropped int
}

type record struct {
	In string
	K  datum
	V  datum
	T  int64
	H  [][2]string
}

type storeRows struct {
	Kind string
	Rows []row
}

type row struct {
	K  datum
	V  datum
	T  *int64
	To *int64
}

// node is one operation of a topology; which fields count depends on it.
type node struct {
	Op, ID, If, As, Fn, Name, Default string
	Topic, From                       names
	Cogroup                           []cogrouped `json:"-"` // instead of From
	Branches                          []branch
	Stores                            []string
	Proc                              proc
	// Of a store.
	Type                     string
	Size, Retention, History int64
	Versioned                *int64
	// Of groupings and aggregations.
	Init            datum
	Add, Sub, Merge string
	Key             string
	Window, Until   any
	Emit            string
	// Of joins.
	How   string
	Grace *int64
}

type branch struct{ ID, If string }

// proc is a processor with its parameters.
type proc struct {
	Fn, Store, Clock, Name, Value string
	Every, TTL, By, Span, Back    int64
	Times                         int
	Lo, Hi                        *string
	Reverse                       bool
	Routes                        []struct{ Prefix, To string }
}

// cogrouped is an input of a cogroup.
type cogrouped struct{ Group, Add string }

func (n *node) UnmarshalJSON(b []byte) error {
	type plain node
	var head struct{ Op string }
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Op != "cogroup" {
		return json.Unmarshal(b, (*plain)(n))
	}
	c := struct {
		*plain
		From *[]cogrouped
	}{(*plain)(n), &n.Cogroup}
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	for _, g := range n.Cogroup {
		n.From = append(n.From, g.Group)
	}
	return nil
}

// names is a name or a list of names.
type names []string

func (n *names) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		*n = names{""}
		return json.Unmarshal(b, &(*n)[0])
	}
	return json.Unmarshal(b, (*[]string)(n))
}

// datum is a key or value: nil, a string, an int64 or a windowed key.
type datum struct{ v any }

func (d *datum) UnmarshalJSON(b []byte) error {
	if b[0] == '{' {
		var w struct {
			Key        datum
			Start, End int64
		}
		err := json.Unmarshal(b, &w)
		d.v = windowed{w.Key.v, w.Start, w.End}
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&d.v); err != nil {
		return err
	}
	if n, ok := d.v.(json.Number); ok {
		i, err := n.Int64()
		d.v = i
		return err
	}
	return nil
}

const ownCases = "testdata"

var casesDir = flag.String("golden.dir", ownCases, "directory with the files of cases to run")

// load reads the groups of a directory.
func load(t *testing.T, dir string) []group {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	var all []group
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g group
		if err := json.Unmarshal(b, &g); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, g)
	}
	return all
}

// show writes a record as key=value @time name:value...
func (r record) String() string {
	s := fmt.Sprintf("%s=%s @%d", show(r.K.v), show(r.V.v), r.T)
	for _, h := range r.H {
		s += fmt.Sprintf(" %s:%s", h[0], h[1])
	}
	return s
}

func (r row) String() string {
	s := show(r.K.v) + "=" + show(r.V.v)
	if r.T != nil {
		s += fmt.Sprintf(" @%d", *r.T)
	}
	if r.To != nil {
		s += fmt.Sprintf("/%d", *r.To)
	}
	return s
}

// show tells strings, numbers, null and windowed keys apart.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "∅"
	case string:
		return fmt.Sprintf("%q", v)
	case windowed:
		return fmt.Sprintf("%s[%d,%d]", show(v.key), v.start, v.end)
	}
	return fmt.Sprint(v)
}

func lines[T fmt.Stringer](all []T) string {
	var b strings.Builder
	for _, x := range all {
		b.WriteString("  " + x.String() + "\n")
	}
	return b.String()
}
