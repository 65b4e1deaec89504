package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// onePath reads the arguments of a command that has one directory and flags.
func onePath(f *flag.FlagSet, usage string, args []string, stderr io.Writer) (path string, code int, done bool) {
	rest, code, done := parse(f, usage, args, stderr, "STATE_DIR")
	if done {
		return "", code, true
	}
	return rest[0], exitOK, false
}

func cannot(stderr io.Writer, command string, err error) int {
	fmt.Fprintf(stderr, "tidemark %s: %s\n", command, errorLine(err.Error()))
	return exitFailed
}

// line gives a name or text that was found somewhere as a part of one line: what a terminal
// would not show as it is comes as an escape, as in Go.
func line(s string) string {
	var b strings.Builder
	for i, n := 0, 0; i < len(s); i += n {
		var r rune
		if r, n = utf8.DecodeRuneInString(s[i:]); unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[i : i+n])
			continue
		}
		quoted := strconv.Quote(s[i : i+n])
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// errorLine is line for the text of an error, which may be that of several.
func errorLine(s string) string { return line(strings.ReplaceAll(s, "\n", "; ")) }

// lineOf is line for a list.
func lineOf(names []string) string {
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = line(name)
	}
	return strings.Join(lines, ", ")
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// quiet is for libraries: what they have to say is in the result.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// byteCount writes a number of bytes for people.
func byteCount(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, names := float64(n)/unit, "KMGTPE"
	i := 0
	for value >= unit && i < len(names)-1 {
		value /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", value, names[i])
}
