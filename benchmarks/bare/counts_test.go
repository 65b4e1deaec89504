package main

import (
	"bytes"
	"errors"
	"testing"
)

func TestCounts(t *testing.T) {
	var c counts
	key := []byte("a")
	for i, want := range []int64{1, 2} {
		if n := c.add(1, key, int64(10+i)); n != want {
			t.Errorf("add gave %d, want %d", n, want)
		}
	}
	if n := c.add(0, key, 7); n != 1 {
		t.Errorf("the same key of another partition gave %d", n)
	}
	key[0] = 'x' // the caller's, and used again
	var got []cell
	take := func(x *cell) error {
		got = append(got, *x)
		return nil
	}
	if err := c.takeChanged(take); err != nil || len(got) != 2 {
		t.Fatalf("%d changed, %v", len(got), err)
	}
	if x := got[0]; string(x.key) != "a" || x.partition != 1 || x.timestamp != 11 || !bytes.Equal(x.value(), []byte{0, 0, 0, 0, 0, 0, 0, 2}) || string(text(x.n)) != "2" {
		t.Errorf("changed cell %+v", x)
	}
	got = nil
	if err := c.takeChanged(take); err != nil || len(got) != 0 {
		t.Errorf("changed again: %v, %v", got, err)
	}
	c.add(1, []byte("a"), 12)
	broken := errors.New("broken")
	if err := c.takeChanged(func(*cell) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
