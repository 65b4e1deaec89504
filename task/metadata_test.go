package task

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/statestore"
)

func TestMetadataRoundTrip(t *testing.T) {
	for _, m := range []Metadata{
		{PartitionTime: -1, StreamTime: -1},
		{PartitionTime: 1234567890123, ID: statestore.CommitID{Epoch: 7, Number: 1 << 40}, StreamTime: 1234567890124,
			Sources: []Covered{{1, 2}, {3, 0}}, Stores: []Covered{{9, 10}}},
	} {
		s, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeMetadata(s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// The bytes are a format: what is committed today is read for years.
func TestMetadataBytes(t *testing.T) {
	m := Metadata{PartitionTime: 258, ID: statestore.CommitID{Epoch: 1, Number: 2}, StreamTime: 3, Sources: []Covered{{0x01020304, 0x05060708}}, Stores: []Covered{{0x0a0b0c0d, 0}}}
	s, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	want := "\x01" + "\x00\x00\x00\x00\x00\x00\x01\x02" + "T\x01" + "\x02\x04\x06" + "\x01\x01\x02\x03\x04\x05\x06\x07\x08" + "\x01\x0a\x0b\x0c\x0d\x00\x00\x00\x00"
	if string(b) != want {
		t.Errorf("got %x, want %x", b, want)
	}
}

func TestMetadataOfOthers(t *testing.T) {
	kafkaStreams := base64.StdEncoding.EncodeToString([]byte("\x01\x00\x00\x00\x00\x00\x00\x01\x02"))
	withProcessors := base64.StdEncoding.EncodeToString([]byte("\x02\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00"))
	for _, s := range []string{"", "hello", kafkaStreams, withProcessors} {
		m, err := DecodeMetadata(s)
		if !errors.Is(err, ErrForeignMetadata) {
			t.Errorf("%q: error %v", s, err)
		}
		if s == kafkaStreams && m.PartitionTime != 258 {
			t.Errorf("partition time %d", m.PartitionTime)
		}
	}
	newer := base64.StdEncoding.EncodeToString([]byte("\x01\x00\x00\x00\x00\x00\x00\x01\x02T\x03"))
	if _, err := DecodeMetadata(newer); err == nil || errors.Is(err, ErrForeignMetadata) || !strings.Contains(err.Error(), "newer Tidemark") {
		t.Errorf("newer version: %v", err)
	}
}

func TestMetadataTooLarge(t *testing.T) {
	fits, too := Metadata{Stores: make([]Covered, 370)}, Metadata{Stores: make([]Covered, 400)}
	if _, err := fits.Encode(); err != nil {
		t.Error(err)
	}
	if _, err := too.Encode(); err == nil || !strings.Contains(err.Error(), "400 stores") {
		t.Errorf("error %v", err)
	}
}

func FuzzDecodeMetadata(f *testing.F) {
	s, _ := Metadata{ID: statestore.CommitID{Epoch: 1, Number: 2}, Sources: []Covered{{1, 2}}}.Encode()
	f.Add(s)
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := DecodeMetadata(s)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			return // more than we would write
		}
		n, err := DecodeMetadata(again)
		if err != nil || n.ID != m.ID || len(n.Stores) != len(m.Stores) {
			t.Errorf("%q decodes to %v, which encodes to %q, which gives %v, %v", s, m, again, n, err)
		}
	})
}

func FuzzDecodeChangeHeader(f *testing.F) {
	f.Add(ChangeHeader{Kind: ChangeCommit, ID: statestore.CommitID{Epoch: 3, Number: 4}, Source: 5, Position: 6}.Append(nil))
	f.Add(ChangeHeader{Kind: ChangeCommit, ID: statestore.CommitID{Epoch: 3, Number: 4}, Source: 5, Position: 6, Schema: 300}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeChangeHeader(b)
		if err != nil {
			return
		}
		if again, err := decodeChangeHeader(h.Append(nil)); err != nil || again != h {
			t.Errorf("%x: %v, again %v, %v", b, h, again, err)
		}
	})
}

func TestChangeHeaderBytes(t *testing.T) {
	h := ChangeHeader{Kind: ChangeCommit, ID: statestore.CommitID{Epoch: 1, Number: -1}, Source: 0x01020304, Position: 64}
	if got, want := string(h.Append(nil)), "\x01\x01\x02\x01\x01\x02\x03\x04\x80\x01"; got != want {
		t.Errorf("got %x, want %x", got, want)
	}
	h.Schema = 300
	if got, want := string(h.Append(nil)), "\x02\x01\x02\x01\x01\x02\x03\x04\x80\x01\xac\x02"; got != want {
		t.Errorf("with a schema version: got %x, want %x", got, want)
	}
	if again, err := decodeChangeHeader(h.Append(nil)); err != nil || again != h {
		t.Errorf("%+v became %+v, %v", h, again, err)
	}
	for _, bad := range []string{"\x02\x01\x02\x01\x01\x02\x03\x04\x80\x01", "\x02\x01\x02\x01\x01\x02\x03\x04\x80\x01\x00", "\x02\x01\x02\x01\x01\x02\x03\x04\x80\x01\xff\xff\xff\xff\xff\x0f"} {
		if _, err := decodeChangeHeader([]byte(bad)); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%x: %v; want damaged", bad, err)
		}
	}
	if _, err := decodeChangeHeader([]byte{3, 1}); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("newer version: %v", err)
	}
}
