//go:build cgo

package confluent

import (
	"encoding/binary"
	"strings"
	"testing"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

func TestParseMetadata(t *testing.T) {
	form := func(generation int32, rest string) []byte {
		return append(binary.NativeEndian.AppendUint32([]byte("CGMDv2:"), uint32(generation)), rest...)
	}
	good := form(7, "group\x00member\x00\x00instance\x00")
	is, err := parseMetadata(good)
	if err != nil || is != (identity{"group", "member", 7}) {
		t.Errorf("got %+v, %v", is, err)
	}
	if is, err := parseMetadata(form(-1, "g\x00\x00\x01")); err != nil || is != (identity{"g", "", -1}) {
		t.Errorf("a stranger is %+v, %v", is, err)
	}
	// Every shorter form, down to where the member id ends, is an error and no panic.
	for n := range len(good) - len("\x00instance\x00") + 1 {
		if _, err := parseMetadata(good[:n]); err == nil {
			t.Errorf("%q was taken", good[:n])
		}
	}
	if _, err := parseMetadata([]byte("CGMDv3:\x00\x00\x00\x00g\x00m\x00\x01")); err == nil {
		t.Error("another version was taken")
	}
}

// If librdkafka or the binding change the form, this is where it shows.
func TestIdentifyReadsTheLibrarysOwn(t *testing.T) {
	md, err := ck.NewTestConsumerGroupMetadata("some-group")
	if err != nil {
		t.Fatal(err)
	}
	if is, err := identify(md); err != nil || is != (identity{"some-group", "", -1}) {
		t.Errorf("got %+v, %v", is, err)
	}
}

func TestNativeOfRefuses(t *testing.T) {
	stranger, err := ck.NewTestConsumerGroupMetadata("g")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m     kafka.Member
		class kafka.ErrorClass
		text  string
	}{
		// Brokers take this one, without a fence: a zombie would commit.
		"no member id":       {kafka.Member{Group: "g", Generation: -1, Native: &snapshot{md: stranger}}, kafka.ClassUnknownMember, "not a member"},
		"another client's":   {kafka.Member{Group: "g", ID: "m", Native: 5}, kafka.ClassInvalid, "another client"},
		"none":               {kafka.Member{Group: "g", ID: "m"}, kafka.ClassInvalid, "another client"},
		"another generation": {kafka.Member{Group: "g", ID: "m", Generation: 3, Native: &snapshot{md: stranger}}, kafka.ClassInvalid, "does not match"},
	} {
		if _, err := nativeOf(c.m); !kafka.IsClass(err, c.class) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := nativeOf(kafka.Member{Group: "g", Generation: -1, Standalone: true, Native: &snapshot{md: stranger}}); err != nil {
		t.Errorf("one that is to have no member: %v", err)
	}
}
