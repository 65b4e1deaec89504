package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-streams/tidemark/statestore"
)

const dumpUsage = `usage: tidemark dump STATE_DIR TASK STORE [flags]

Prints the entries of one store, one a line, as they are on the disk: also those of windows,
sessions and versions that have expired and are not removed yet. STATE_DIR may also be the
application's or the task's directory. A key or value that is printable text is printed as it
is, any other as hex:... (and --from and --to take that too). A task that is in use cannot be
read; take a snapshot and dump that.

Exit codes: 0 done, 2 could not run.

`

// dumpFlags are the arguments of the command.
type dumpFlags struct {
	dir, task, store, app string
	from, to              []byte
	limit                 int
	asJSON                bool
}

func parseDump(args []string, stderr io.Writer) (d dumpFlags, code int, done bool) {
	f := flag.NewFlagSet("dump", flag.ContinueOnError)
	f.StringVar(&d.app, "app", "", "application `id` (default: the only one in STATE_DIR)")
	f.Func("from", "first `key` (text, or hex:...)", func(s string) (err error) { d.from, err = parseBytes(s); return err })
	f.Func("to", "`key` before which to end (text, or hex:...)", func(s string) (err error) { d.to, err = parseBytes(s); return err })
	f.IntVar(&d.limit, "limit", 0, "`number` of entries at most (0 = all)")
	f.BoolVar(&d.asJSON, "json", false, "a JSON object a line instead of text")
	rest, code, done := parse(f, dumpUsage, args, stderr, "STATE_DIR", "TASK", "STORE")
	if done {
		return d, code, true
	}
	if d.limit < 0 {
		return d, misused(f, dumpUsage, stderr, fmt.Sprintf("--limit %d is negative (0 = all)", d.limit)), true
	}
	d.dir, d.task, d.store = rest[0], rest[1], rest[2]
	return d, exitOK, false
}

const hexMark = "hex:"

func parseBytes(s string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(s, hexMark); ok {
		return hex.DecodeString(digits)
	}
	return []byte(s), nil
}

func runDump(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d, code, done := parseDump(args, stderr)
	if done {
		return code
	}
	out := bufio.NewWriter(stdout)
	err := dump(ctx, d, out)
	if ferr := out.Flush(); err == nil && ferr != nil {
		err = fmt.Errorf("write the result: %w", ferr)
	}
	if err != nil {
		return cannot(stderr, "dump", err)
	}
	return exitOK
}

// only says what there is in place of what was asked for.
func only(names []string) string {
	if len(names) == 0 {
		return "nor any other"
	}
	return "only " + strings.Join(names, ", ")
}

func dump(ctx context.Context, d dumpFlags, out io.Writer) (err error) {
	t, err := lookAt(d.dir)
	if err != nil {
		return err
	}
	a, err := t.choose(d.app)
	if err != nil {
		return err
	}
	if !slices.Contains(a.Tasks, d.task) {
		return fmt.Errorf("application %s has no task %s here, %s", a.ID, d.task, only(a.Tasks))
	}
	v, err := statestore.OpenReadOnly(filepath.Join(a.Path, d.task), statestore.ReadOptions{Logger: quiet()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	var names []string
	for _, s := range v.Metadata().Stores {
		if s.Spec.Name == d.store {
			return dumpStore(ctx, d, v, s.Spec, out)
		}
		names = append(names, s.Spec.Name)
	}
	return fmt.Errorf("task %s has no store %q, %s", d.task, d.store, only(names))
}

func dumpStore(ctx context.Context, d dumpFlags, v *statestore.View, spec statestore.Spec, out io.Writer) error {
	write := writeEntryText
	if d.asJSON {
		write = writeEntryJSON
	}
	n, read := 0, 0
	for e, err := range v.Entries(d.store, d.from, d.to) {
		if err != nil {
			return err
		}
		if read++; read%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := write(out, spec, e); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		if n++; n == d.limit {
			break
		}
	}
	return nil
}

// dumpedEntry is an entry as JSON. docs/cli.md documents it; names and meanings stay.
type dumpedEntry struct {
	Key       []byte  `json:"key"` // base64
	KeyText   *string `json:"key_text,omitempty"`
	Value     []byte  `json:"value"`
	ValueText *string `json:"value_text,omitempty"`
	Timestamp *int64  `json:"timestamp,omitempty"`
	Start     *int64  `json:"start,omitempty"`
	End       *int64  `json:"end,omitempty"`
	Sequence  *uint32 `json:"sequence,omitempty"`
	ValidFrom *int64  `json:"valid_from,omitempty"`
	ValidTo   *int64  `json:"valid_to,omitempty"`
}

func writeEntryJSON(out io.Writer, spec statestore.Spec, e statestore.StoredEntry) error {
	x := dumpedEntry{Key: e.Key, KeyText: textOf(e.Key), Value: e.Value, ValueText: textOf(e.Value)}
	if x.Key == nil {
		x.Key = []byte{}
	}
	if x.Value == nil {
		x.Value = []byte{}
	}
	if stamped(spec.Kind) {
		x.Timestamp = &e.Timestamp
	}
	end := e.Start + spec.WindowSize.Milliseconds()
	switch spec.Kind {
	case statestore.KindWindow, statestore.KindTimestampedWindow:
		x.Start = &e.Start
		if spec.WindowSize > 0 {
			x.End = &end
		}
		if spec.RetainDuplicates {
			x.Sequence = &e.Sequence
		}
	case statestore.KindSession:
		x.Start, x.End = &e.Start, &e.End
	case statestore.KindVersioned:
		x.ValidFrom = &e.Start
		if !e.Current {
			x.ValidTo = &e.End
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(x)
}

func stamped(k statestore.Kind) bool {
	return k == statestore.KindTimestampedKeyValue || k == statestore.KindTimestampedWindow
}

// writeEntryText writes key, times, value, with tabs between.
func writeEntryText(out io.Writer, spec statestore.Spec, e statestore.StoredEntry) error {
	columns := []string{shown(e.Key)}
	add := func(name string, ms int64) { columns = append(columns, name+"="+strconv.FormatInt(ms, 10)) }
	switch spec.Kind {
	case statestore.KindWindow, statestore.KindTimestampedWindow:
		add("start", e.Start)
		if spec.RetainDuplicates {
			add("sequence", int64(e.Sequence))
		}
	case statestore.KindSession:
		add("start", e.Start)
		add("end", e.End)
	case statestore.KindVersioned:
		add("from", e.Start)
		if !e.Current {
			add("to", e.End)
		}
	}
	if stamped(spec.Kind) {
		add("timestamp", e.Timestamp)
	}
	columns = append(columns, shown(e.Value))
	_, err := fmt.Fprintln(out, strings.Join(columns, "\t"))
	return err
}

// textOf gives bytes as text if a person can read them.
func textOf(b []byte) *string {
	if !utf8.Valid(b) || bytes.ContainsFunc(b, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil
	}
	s := string(b)
	return &s
}

// shown gives bytes so that they can be told from any others, and given to --from.
func shown(b []byte) string {
	if s := textOf(b); s != nil && *s != "" && !strings.HasPrefix(*s, hexMark) {
		return *s
	}
	return hexMark + hex.EncodeToString(b)
}
