package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

func (c *counted) offsets(verb string) (code int, r offsetsResult) {
	c.t.Helper()
	var out, bad bytes.Buffer
	code = run(c.t.Context(), []string{"offsets", verb, "--app", c.app, "--brokers", c.addr, "--state-dir", c.state, "--json"}, &out, &bad)
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		c.t.Fatalf("offsets %s: %d, %v\n%s%s", verb, code, err, out.String(), bad.String())
	}
	return code, r
}

// set commits an offset for all partitions of the input, as kafka-consumer-groups does.
func (c *counted) set(at int64) {
	c.t.Helper()
	c.awaitNoMembers()
	var list kadm.Offsets
	for p := range int32(2) {
		list.Add(kadm.Offset{Topic: c.in, Partition: p, At: at, LeaderEpoch: -1})
	}
	if err := c.adm.CommitAllOffsets(c.t.Context(), c.app, list); err != nil {
		c.t.Fatal(err)
	}
}

// Somebody resets the offsets of the inputs to the beginning. The application refuses to start; with
// accept-reset it counts the input once more, with use-store it goes on as if nothing had happened. The
// choice counts for one start.
func TestOffsets(t *testing.T) {
	for verb, twice := range map[string]bool{"accept-reset": true, "use-store": false} {
		t.Run(verb, func(t *testing.T) {
			testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
				t.Parallel()
				c := newCounted(t, b)
				closeApp := func(app *streams.App) {
					t.Helper()
					if err := app.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				closeApp(c.run())
				if code, r := c.offsets(verb); code != exitOK || r.Conflict || r.Recorded != "" || len(r.Offsets) != 4 {
					t.Fatalf("nothing to choose: %d, %+v", code, r)
				}
				c.set(0)
				if err := c.fails(); !strings.Contains(err.Error(), verb) {
					t.Fatalf("the error does not say that one may choose: %v", err)
				}
				if code, r := c.offsets("show"); code != exitProblems || !r.Conflict || r.Recorded != "" {
					t.Fatalf("show: %d, %+v", code, r)
				}
				if code, r := c.offsets(verb); code != exitOK || r.Recorded != verb {
					t.Fatalf("%s: %d, %+v", verb, code, r)
				}
				closeApp(c.run())
				want := []string{"a 2", "b 2"}
				if twice {
					want = []string{"a 4", "b 4"}
				}
				if got := c.last(serde.Int64); !slices.Equal(got, want) {
					t.Errorf("counts %v, want %v", got, want)
				}
				if code, r := c.offsets("show"); code != exitOK || r.Conflict {
					t.Errorf("after it: %d, %+v", code, r)
				}
				closeApp(c.run())
				c.set(0)
				if err := c.fails(); !strings.Contains(err.Error(), verb) {
					t.Errorf("the choice outlived its start: %v", err)
				}
			})
		})
	}
}

// A state directory that does not exist is a mistake, and not a host without stores.
func TestOffsetsOfAMisspeltDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, verb := range []string{"show", "use-store", "accept-reset"} {
		var out, bad bytes.Buffer
		args := []string{"offsets", verb, "--app", "app", "--brokers", "127.0.0.1:1", "--state-dir", missing}
		if code := run(t.Context(), args, &out, &bad); code != exitFailed || !strings.Contains(bad.String(), "--state-dir: stat "+missing) {
			t.Errorf("%s: %d, %s%s", verb, code, out.String(), bad.String())
		}
	}
}

// The group was deleted: some brokers say so instead of giving no offsets.
func TestOffsetsOfADeletedGroup(t *testing.T) {
	testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
		t.Parallel()
		c := newCounted(t, b)
		app := c.run()
		var out, bad bytes.Buffer
		args := []string{"offsets", "show", "--app", c.app, "--brokers", c.addr, "--state-dir", c.state}
		if code := run(t.Context(), args, &out, &bad); code != exitFailed || !strings.Contains(bad.String(), "take a snapshot") {
			t.Errorf("while the application runs: %d, %s%s", code, out.String(), bad.String())
		}
		if err := app.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.awaitNoMembers()
		if r, err := c.adm.DeleteGroup(t.Context(), c.app); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		if code, r := c.offsets("show"); code != exitProblems || !r.Conflict || len(r.Offsets) != 4 {
			t.Fatalf("show: %d, %+v", code, r)
		}
		if code, r := c.offsets("use-store"); code != exitOK || r.Recorded != "use-store" {
			t.Fatalf("use-store: %d, %+v", code, r)
		}
		if err := c.run().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code, r := c.offsets("show"); code != exitOK || r.Conflict {
			t.Errorf("after it: %d, %+v", code, r)
		}
	})
}
