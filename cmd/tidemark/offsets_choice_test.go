package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/serde"
)

// more adds a record to each partition of the input.
func (c *counted) more(words string) {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	for p := range int32(2) {
		if err := cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: c.in, Partition: p, Value: []byte(words)}).FirstErr(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// deleteBefore deletes the input's records before an offset.
func (c *counted) deleteBefore(at int64) {
	c.t.Helper()
	var list kadm.Offsets
	for p := range int32(2) {
		list.Add(kadm.Offset{Topic: c.in, Partition: p, At: at})
	}
	r, err := c.adm.DeleteRecords(c.t.Context(), list)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *counted) deleteGroup() {
	c.t.Helper()
	if r, err := c.adm.DeleteGroup(c.t.Context(), c.app); err != nil || r.Err != nil {
		c.t.Fatal(err, r.Err)
	}
}

// Each conflict that only accept-reset ends is shown, refuses use-store, and is over for good after one start. What it
// needs no store for it needs no directory for either.
func TestOffsetsAccept(t *testing.T) {
	for name, x := range map[string]struct {
		lose        func(c *counted)
		state, told string
		counts      []string
	}{
		"records deleted before they were read": {func(c *counted) {
			for range 3 {
				c.more("a")
			}
			c.deleteBefore(3)
		}, "2 records are gone: the log begins at 3", "2 records are gone", []string{"a 4", "b 2"}},
		"the same without the disk": {func(c *counted) {
			for range 3 {
				c.more("a")
			}
			c.deleteBefore(3)
			c.loseTasks()
		}, "2 records are gone: the log begins at 3", "2 records are gone", []string{"a 4", "b 2"}},
		// What is in the repartition topic is counted once more too.
		"offsets and tasks lost": {func(c *counted) {
			c.deleteGroup()
			c.loseTasks()
		}, "the changelog holds records", "do not know store counts", []string{"a 6", "b 6"}},
		"offsets and disk lost": {func(c *counted) {
			c.deleteGroup()
			if err := os.RemoveAll(filepath.Join(c.state, c.app)); err != nil {
				c.t.Fatal(err)
			}
		}, "the changelog holds records", "do not know store counts", []string{"a 6", "b 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
				t.Parallel()
				c := newCounted(t, b)
				if err := c.run().Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.awaitNoMembers()
				x.lose(c)
				if err := c.fails(); !strings.Contains(err.Error(), x.told) || !strings.Contains(err.Error(), "accept-reset") {
					t.Fatalf("start: %v", err)
				}
				c.awaitNoMembers()
				code, r := c.offsets("show")
				if text := fmt.Sprintf("%+v", r); code != exitProblems || !r.Conflict || r.Recorded != "" || !strings.Contains(text, x.state) {
					t.Fatalf("show: %d, %s", code, text)
				}
				var out, bad bytes.Buffer
				args := []string{"offsets", "use-store", "--app", c.app, "--brokers", c.addr, "--state-dir", c.state}
				if code := run(t.Context(), args, &out, &bad); code != exitFailed || !strings.Contains(bad.String(), "choose accept-reset") {
					t.Errorf("use-store: %d, %s%s", code, out.String(), bad.String())
				}
				if code, r := c.offsets("accept-reset"); code != exitOK || r.Recorded != "accept-reset" {
					t.Fatalf("accept-reset: %d, %+v", code, r)
				}
				for range 2 { // the choice is over, and so is the conflict
					if err := c.run().Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got := c.last(serde.Int64); !slices.Equal(got, x.counts) {
					t.Errorf("counts %v, want %v", got, x.counts)
				}
				c.awaitNoMembers()
				if code, r := c.offsets("show"); code != exitOK || r.Conflict || len(r.Changelogs) > 0 {
					t.Errorf("after it: %d, %+v", code, r)
				}
			})
		})
	}
}

// An input that was deleted and created again is seen by its id, whether or not the group forgot its offsets.
func TestOffsetsOfAnInputCreatedAgain(t *testing.T) {
	testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
		t.Parallel()
		c := newCounted(t, b)
		if err := c.run().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.awaitNoMembers()
		if _, err := c.adm.DeleteTopic(t.Context(), c.in); err != nil {
			t.Fatal(err)
		}
		c.until("the input can be created again", func() bool {
			r, err := c.adm.CreateTopic(t.Context(), 2, 1, nil, c.in)
			return err == nil && r.Err == nil
		})
		c.more("a")
		if err := c.fails(); !strings.Contains(err.Error(), "accept-reset") {
			t.Fatalf("start: %v", err)
		}
		c.awaitNoMembers()
		if code, r := c.offsets("accept-reset"); code != exitOK || r.Recorded != "accept-reset" {
			t.Fatalf("accept-reset: %d, %+v", code, r)
		}
		if err := c.run().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.last(serde.Int64); !slices.Equal(got, []string{"a 4", "b 2"}) {
			t.Errorf("counts %v", got)
		}
	})
}

func (c *counted) loseTasks() {
	c.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(c.state, c.app, "*_*"))
	if err != nil || len(dirs) == 0 {
		c.t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			c.t.Fatal(err)
		}
	}
}
