package report

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	var f Flags
	s := flag.NewFlagSet("test", flag.ContinueOnError)
	f.Register(s)
	if err := s.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestFlags(t *testing.T) {
	f := parse(t, "-brokers", "a:1,b:2", "-in", "i", "-out", "o")
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	if f.Client != "franz" || f.ExactlyOnce() || f.CommitInterval != 100*time.Millisecond || len(f.BrokerList()) != 2 {
		t.Errorf("defaults: %+v", f)
	}
	err := parse(t, "-client", "x", "-guarantee", "y", "-commit-interval", "0", "-until", "-1").Validate()
	for _, word := range []string{"-brokers", "-in", "-out", `-client "x"`, `-guarantee "y"`, "-commit-interval 0s", "-until -1"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

func TestFinish(t *testing.T) {
	f := parse(t, "-cpuprofile", filepath.Join(t.TempDir(), "profile"))
	var progress, out strings.Builder
	r, err := Start(f, &progress, func() Progress { return Progress{} })
	if err != nil {
		t.Fatal(err)
	}
	for begin := CPU(); CPU()-begin < 20*time.Millisecond; { // use some
	}
	if err := r.Finish(&out, Final{Progress: Progress{State: "closed", Processed: 2000}, Commits: 3, Seconds: 0.5}); err != nil {
		t.Fatal(err)
	}
	var got Final
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.RecordsPerSec != 4000 || got.CPUSeconds < 0.02 || got.CPUPerMillion < 500*got.CPUSeconds-1 || got.PeakMB < 1 || got.Client != "franz" || got.Commits != 3 {
		t.Errorf("final line %s", out.String())
	}
	if info, err := os.Stat(f.CPUProfile); err != nil || info.Size() == 0 {
		t.Errorf("profile: %v", err)
	}
}

func TestProfileThatCannotBeWritten(t *testing.T) {
	f := parse(t, "-cpuprofile", filepath.Join(t.TempDir(), "no", "profile"))
	if _, err := Start(f, os.Stderr, nil); err == nil || !strings.Contains(err.Error(), "create CPU profile") {
		t.Errorf("got %v", err)
	}
}
