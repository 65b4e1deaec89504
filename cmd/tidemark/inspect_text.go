package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// writeInspection writes the result of inspect for people.
func writeInspection(out io.Writer, in *inspection) error {
	var b bytes.Buffer
	for i, a := range in.Apps {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeApp(&b, a)
	}
	if len(in.Other) > 0 {
		fmt.Fprintf(&b, "\nnot of an application: %s\n", lineOf(in.Other))
	}
	if in.Problems > 0 {
		fmt.Fprintf(&b, "\n%s\n", count(in.Problems, "problem"))
	}
	_, err := out.Write(b.Bytes())
	return err
}

func writeApp(b *bytes.Buffer, a inspectedApp) {
	fmt.Fprintf(b, "application %s in %s, %s\n", line(a.App), line(a.Path), count(len(a.Tasks), "task"))
	if a.InUse != "" {
		fmt.Fprintf(b, "in use by %s; of a task that it has open, look at a snapshot (tidemark snapshot)\n", line(a.InUse))
	}
	for _, t := range a.Tasks {
		writeTask(b, t)
	}
	for _, x := range a.Aside {
		fmt.Fprintf(b, "\nset aside: %s\n", line(filepath.Base(x.Path)))
		for reason := range strings.Lines(strings.TrimSpace(x.Reason)) {
			if reason = strings.TrimSpace(reason); reason != "" {
				fmt.Fprintf(b, "  %s\n", line(reason))
			}
		}
	}
	for _, x := range a.Trash {
		fmt.Fprintf(b, "\ntrash: %s, %s: the next cleaning removes it\n", line(filepath.Base(x.Path)), byteCount(x.Bytes))
	}
	if len(a.Legacy) > 0 {
		b.WriteString("\nof no task:\n")
		writeLegacy(b, a.Legacy)
	}
	if len(a.Other) > 0 {
		fmt.Fprintf(b, "\nnot of a task: %s\n", lineOf(a.Other))
	}
}

func writeTask(b *bytes.Buffer, t inspectedTask) {
	fmt.Fprintf(b, "\ntask %s: %s, %s\n", t.Task, t.Status, byteCount(t.Bytes))
	if t.Problem != "" {
		fmt.Fprintf(b, "  PROBLEM: %s\n", errorLine(t.Problem))
	}
	if s := t.Store; s != nil {
		writeFacts(b, s)
	}
	writeLegacy(b, t.Legacy)
	if len(t.OtherFiles) > 0 {
		fmt.Fprintf(b, "  other files: %s\n", lineOf(t.OtherFiles))
	}
}

func writeLegacy(b *bytes.Buffer, files []legacyFile) {
	if len(files) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  LEGACY\tKIND\tSTORE\tSTATUS\tREASON")
	for _, f := range files {
		kind := f.Kind
		if f.Engine != "" {
			kind = f.Engine + " " + kind
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", line(f.Path), orDash(kind), orDash(f.Store), f.Status, orDash(strings.ReplaceAll(f.Reason, "\n", "; ")))
	}
	_ = w.Flush() // into a buffer
}

func writeFacts(b *bytes.Buffer, s *taskFacts) {
	fmt.Fprintf(b, "  format %d, created %s, id %s\n", s.FormatVersion, timeText(s.Created), s.ID)
	fmt.Fprintf(b, "  commit %d/%d, %s; stream time %s\n", s.Commit.Epoch, s.Commit.Number, timeText(s.Commit.Time), streamTimeText(s.StreamTime))
	if s.Owner != nil {
		fmt.Fprintf(b, "  owner %s, last %s\n", line(s.Owner.Process), timeText(s.Owner.Last))
	}
	if s.Log.Batches > 0 {
		fmt.Fprintf(b, "  not closed cleanly: %s in the log (%s)\n", count(int(s.Log.Batches), "batch"), byteCount(s.Log.Bytes))
	}
	for _, p := range s.Positions {
		fmt.Fprintf(b, "  position %s-%d: %d\n", line(p.Topic), p.Partition, p.Next)
	}
	for _, x := range s.Imports {
		fmt.Fprintf(b, "  imported %s into %s, %s\n", line(x.Source), line(x.Store), timeText(x.Time))
	}
	if len(s.Stores) == 0 {
		b.WriteString("  no stores\n")
		return
	}
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  STORE\tKIND\tROWS\tBYTES\tOFFSET\tCOMPLETE\tCHANGELOG\tSERDES\tSETTINGS")
	for _, x := range s.Stores {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", line(x.Name), x.Kind, rowsText(x), byteCount(x.Bytes), offsetText(x.Committed), completeText(x),
			orDash(x.Changelog), orDash(x.KeySerde)+", "+orDash(x.ValueSerde), settingsText(x))
	}
	_ = w.Flush() // into a buffer
}

func timeText(t *time.Time) string {
	if t == nil {
		return "at an unknown time"
	}
	return t.Format(time.RFC3339)
}

func streamTimeText(ms *int64) string {
	if ms == nil {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", *ms, time.UnixMilli(*ms).UTC().Format(time.RFC3339))
}

func rowsText(x inspectedStore) string {
	if x.External {
		return "external"
	}
	if x.RowsExact {
		return fmt.Sprint(x.Rows)
	}
	return fmt.Sprintf("about %d", x.Rows)
}

func offsetText(o offsetFacts) string {
	if o.Next != nil {
		return fmt.Sprint(*o.Next)
	}
	return o.State
}

func completeText(x inspectedStore) string {
	switch {
	case x.Forgotten:
		return "forgotten"
	case x.Complete:
		return "yes"
	case x.Replaying:
		return "replaying"
	}
	return "no"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return line(s)
}

func settingsText(x inspectedStore) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if x.SchemaVersion > 0 {
		add("schema %d", x.SchemaVersion)
	}
	if x.Migrating {
		add("its change to a newer schema is not finished")
	}
	if x.RetentionMs > 0 {
		add("retention %v", time.Duration(x.RetentionMs)*time.Millisecond)
	}
	if x.WindowSizeMs > 0 {
		add("window %v", time.Duration(x.WindowSizeMs)*time.Millisecond)
	}
	if x.RetainDuplicates {
		add("duplicates")
	}
	if x.InMemory {
		add("in memory")
	}
	if x.External {
		add("kept by the program itself")
	}
	return orDash(strings.Join(parts, ", "))
}

// count writes a number of things.
func count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "ch"):
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
