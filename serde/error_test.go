package serde_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
)

func TestErrorText(t *testing.T) {
	_, cause := serde.Int64.Decode([]byte("12345"))
	for _, c := range []struct {
		err  serde.Error
		want string
	}{
		{serde.Error{Serde: "int64", Topic: "orders", Partition: 3, Offset: 42, Part: serde.PartValue, Err: cause},
			`value of orders-3 at offset 42, serde "int64": 5 bytes instead of 8 (was the data written with another serde?)`},
		{serde.Error{Serde: "string", Topic: "orders", Offset: 0, Part: serde.PartKey, Err: errors.New("bad")},
			`key of orders-0 at offset 0, serde "string": bad`},
		{serde.Error{Serde: "string", Topic: "out", Partition: -1, Offset: -1, Part: serde.PartValue, Err: errors.New("bad")},
			`value of out, serde "string": bad`},
		{serde.Error{Serde: "string", Partition: -1, Offset: -1, Part: serde.PartKey, Err: errors.New("bad")},
			`key, serde "string": bad`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("error text %q, want %q", got, c.want)
		}
	}
}

func TestErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	wrapped := fmt.Errorf("task 0_1: %w", &serde.Error{Serde: "x", Topic: "t", Err: cause})
	var e *serde.Error
	if !errors.As(wrapped, &e) || e.Topic != "t" || !errors.Is(wrapped, cause) {
		t.Errorf("cannot find the serde error and its cause in %v", wrapped)
	}
}
