//go:build cgo

package embedded

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// A stock consumer program becomes a stateful one with fewer than 25 changed lines, and its counts go on after a
// restart.
func TestStockProgram(t *testing.T) {
	t.Parallel()
	if n := changed(t, "plain/main.go", "stateful/main.go"); n >= 25 {
		t.Errorf("%d lines are changed or new", n)
	} else {
		t.Logf("%d lines are changed or new", n)
	}
	program := filepath.Join(t.TempDir(), "stateful")
	if out, err := exec.Command("go", "build", "-o", program, "./stateful").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := testbroker.Kfake(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, 1, nil, "clicks"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, want := range []string{"ada 1", "ada 2", "ada 3"} {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "clicks", Key: []byte("ada")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if got := firstLine(t, program, b.Addrs[0], dir); got != want {
			t.Fatalf("it prints %q, want %q", got, want)
		}
	}
}

// firstLine runs a program until it has printed a line, and ends it.
func firstLine(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Signal(os.Interrupt)
	if werr := cmd.Wait(); err != nil || werr != nil {
		t.Fatalf("%v, %v: %s", err, werr, errs.String())
	}
	return strings.TrimSpace(line)
}

// changed counts the lines of the second file that the first does not have at their place: those beside a longest
// common subsequence. Comments in front of the package and empty lines do not count.
func changed(t *testing.T, first, second string) int {
	t.Helper()
	read := func(name string) (lines []string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(string(text), "package main")
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}
	a, b := read(first), read(second)
	common := make([]int, len(b)+1) // of a's lines so far and b's first j
	for _, line := range a {
		diagonal := 0
		for j := range b {
			above := common[j+1]
			if line == b[j] {
				common[j+1] = diagonal + 1
			} else {
				common[j+1] = max(above, common[j])
			}
			diagonal = above
		}
	}
	return len(b) - common[len(b)]
}
