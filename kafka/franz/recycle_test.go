package franz

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// TestRecordPool: a slice has room for what was asked for, whatever was given back before, and one
// that is large enough is used again.
func TestRecordPool(t *testing.T) {
	var p recordPool
	for _, n := range []int{0, 1, 2, 3, 1000, 1024, 1025, 5} {
		s := p.GetRecords(n)
		if cap(s) < n {
			t.Fatalf("room for %d records, want %d", cap(s), n)
		}
		p.PutRecords(s[:cap(s)])
	}
	// The race detector has pools drop some of what they are given.
	for range 1000 {
		s := p.GetRecords(700)[:700]
		p.PutRecords(s)
		if again := p.GetRecords(600)[:600]; &again[0] == &s[0] {
			return
		}
	}
	t.Error("nothing is used again")
}

var _ kgo.PoolRecords = (*recordPool)(nil)

// decompressed is a pool that a user may have given to clients of their own.
type decompressed struct{}

func (decompressed) GetDecompressBytes([]byte, kgo.CompressionCodecType) []byte { return nil }
func (decompressed) PutDecompressBytes([]byte)                                  {}

// TestUsersPoolOfBytes: with one, nothing is given back, for the bytes of keys and values would go
// with it.
func TestUsersPoolOfBytes(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []kgo.Opt
		want    bool
	}{
		{"none", nil, true},
		{"records", []kgo.Opt{kgo.WithPools(&recordPool{})}, true},
		{"bytes", []kgo.Opt{kgo.WithPools(decompressed{})}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Client{Options: test.options}.NewConsumer(kafka.Settings{Brokers: []string{"127.0.0.1:1"}}, kafka.ConsumerConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			if got := c.(*consumer).recycles; got != test.want {
				t.Errorf("gives records back: %v, want %v", got, test.want)
			}
		})
	}
}
