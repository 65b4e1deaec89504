package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
)

// The program starts itself again, as the broker and as the application.
func TestMain(m *testing.M) {
	embeddedbroker.Main()
	if slices.Contains(os.Args, "-begun") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestStart(t *testing.T) {
	s := setup{tasks: 5, workers: 2, app: "start-test"}
	var out bytes.Buffer
	if err := measure(t.Context(), s, 2, &out); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(&out)
	for i := range 2 {
		var r result
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Tasks != 5 || r.Scanned != 5 || r.Restored != 0 || r.Replayed != 0 ||
			r.ScanMS <= 0 || r.RestoringMS < r.ScanMS || r.RunningMS < r.RestoringMS || r.RunningMS > float64(time.Minute.Milliseconds()) {
			t.Errorf("start %d: %+v", i, r)
		}
	}
	if lines.More() {
		t.Error("more than one line for each start")
	}
}
