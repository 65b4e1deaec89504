package serde_test

import (
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A serde of one's own: a day as three bytes, so that keys sort by date.
type daySerde struct{}

func (daySerde) Name() string { return "example:day" }

func (daySerde) Append(dst []byte, v time.Time) ([]byte, error) {
	days := v.Unix() / 86400
	if days < 0 || days >= 1<<24 {
		return nil, fmt.Errorf("%s is not between 1970 and 47904", v)
	}
	return append(dst, byte(days>>16), byte(days>>8), byte(days)), nil
}

func (daySerde) Decode(b []byte) (time.Time, error) {
	if len(b) != 3 {
		return time.Time{}, fmt.Errorf("%d bytes instead of 3", len(b))
	}
	days := int64(b[0])<<16 | int64(b[1])<<8 | int64(b[2])
	return time.Unix(days*86400, 0).UTC(), nil
}

func ExampleSerde() {
	var day serde.Serde[time.Time] = daySerde{}
	b, _ := day.Append(nil, time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	v, _ := day.Decode(b)
	fmt.Printf("%x %s\n", b, v.Format(time.DateOnly))
	_, err := day.Decode(nil)
	fmt.Println(err)
	// Output:
	// 005007 2026-02-03
	// 0 bytes instead of 3
}

func Example() {
	b, _ := serde.String.Append(nil, "key ")
	b, _ = serde.Int64.Append(b, 42)
	fmt.Printf("%q\n", b)
	_, err := serde.Int64.Decode(b)
	fmt.Println(err)
	// Output:
	// "key \x00\x00\x00\x00\x00\x00\x00*"
	// 12 bytes instead of 8 (was the data written with another serde?)
}

func ExampleJSON() {
	type order struct {
		ID    string `json:"id"`
		Items []int  `json:"items"`
	}
	s := serde.JSON[order]()
	b, _ := s.Append(nil, order{"<1>", []int{2, 3}})
	fmt.Println(string(b))
	// Output: {"id":"<1>","items":[2,3]}
}

func ExampleProto() {
	s := serde.Proto[*durationpb.Duration]()
	b, _ := s.Append(nil, durationpb.New(2*time.Second))
	v, _ := s.Decode(b)
	fmt.Println(s.Name(), v.AsDuration())
	// Output: proto:google.protobuf.Duration 2s
}

func ExampleNullable() {
	ages := serde.Nullable(serde.Int64) // Serde[*int64]
	unknown, _ := ages.Append(nil, nil)
	fmt.Println(unknown == nil)
	age := int64(0)
	b, _ := ages.Append(nil, &age)
	fmt.Println(len(b))
	// Output:
	// true
	// 8
}

func ExampleError() {
	_, cause := serde.Int32.Decode([]byte("three"))
	fmt.Println(&serde.Error{Serde: serde.Int32.Name(), Topic: "orders", Partition: 3, Offset: 42, Part: serde.PartValue, Err: cause})
	// Output: value of orders-3 at offset 42, serde "int32": 5 bytes instead of 4 (was the data written with another serde?)
}
