package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// input is the files of a test, and the words in them.
type input struct {
	files []string
	lines int64
	count map[string]int64
}

// newInput writes two files, the second without a last end of line, with words of all
// lengths and frequencies, and the separators that make trouble.
func newInput(t *testing.T, r *rand.Rand, lines int) *input {
	t.Helper()
	in := &input{count: map[string]int64{}}
	dir := t.TempDir()
	for i, n := range []int{lines * 2 / 3, lines / 3} {
		var b bytes.Buffer
		for range n {
			for range r.IntN(16) {
				fmt.Fprintf(&b, "%s%s", word(r), []string{" ", " ", " ", ", ", "\t", "-", "é", "\xff", "\x00"}[r.IntN(9)])
			}
			b.WriteByte('\n')
		}
		if i == 1 {
			b.WriteString("the END")
			n++
		}
		in.lines += int64(n)
		recount(in.count, b.Bytes())
		name := filepath.Join(dir, fmt.Sprintf("input-%d.txt", i))
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		in.files = append(in.files, name)
	}
	return in
}

// word gives one of some thousand words, the first ones most often.
func word(r *rand.Rand) string {
	n := int(r.ExpFloat64() * 400)
	w := fmt.Sprintf("%c%x", 'a'+n%26, n*2654435761%1000003)
	if r.IntN(4) == 0 {
		w = strings.ToUpper(w)
	}
	return w
}

// recount is the oracle. It shares nothing with the program that is tested.
func recount(count map[string]int64, text []byte) {
	start := -1
	lower := bytes.Clone(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 32
		}
		letter := lower[i] >= 'a' && lower[i] <= 'z' || lower[i] >= '0' && lower[i] <= '9'
		if letter && start < 0 {
			start = i
		}
		if !letter && start >= 0 {
			count[string(lower[start:i])]++
			start = -1
		}
	}
	if start >= 0 {
		count[string(lower[start:])]++
	}
}

// times gives the counts of the files counted n times over.
func (in *input) times(n int) map[string]int64 {
	all := map[string]int64{}
	for w, c := range in.count {
		all[w] = c * int64(n)
	}
	return all
}

// table is what --all prints.
func table(count map[string]int64) string {
	words := make([]string, 0, len(count))
	for w := range count {
		words = append(words, w)
	}
	sort.Slice(words, func(i, j int) bool {
		if a, b := count[words[i]], count[words[j]]; a != b {
			return a > b
		}
		return words[i] < words[j]
	})
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%d\t%s\n", count[w], w)
	}
	return b.String()
}
