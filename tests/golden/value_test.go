package golden

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// windowed is a key of a windowed aggregation.
type windowed struct {
	key        any
	start, end int64
}

// dynamic is the one serde of the cases: strings, int64 and windowed keys, told apart by their
// first byte. Strings sort by their bytes; windowed keys by key, start and end.
type dynamic struct{}

func (dynamic) Name() string { return "golden" }

func (d dynamic) Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return append(append(dst, 's'), v...), nil
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, 'i'), uint64(v)), nil
	case windowed:
		dst, err := d.Append(append(dst, 'w'), v.key)
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(v.start)), uint64(v.end)), err
	}
	return dst, fmt.Errorf("a %T", v)
}

func (d dynamic) Decode(b []byte) (any, error) {
	switch {
	case len(b) > 0 && b[0] == 's':
		return string(b[1:]), nil
	case len(b) == 9 && b[0] == 'i':
		return int64(binary.BigEndian.Uint64(b[1:])), nil
	case len(b) > 17 && b[0] == 'w':
		n := len(b) - 16
		key, err := d.Decode(b[1:n])
		return windowed{key, int64(binary.BigEndian.Uint64(b[n:])), int64(binary.BigEndian.Uint64(b[n+8:]))}, err
	}
	return nil, fmt.Errorf("not a value of a case: %q", b)
}

// text of a key or value.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case windowed:
		return fmt.Sprintf("%s@%d/%d", text(v.key), v.start, v.end)
	}
	return fmt.Sprint(v)
}

var integer = regexp.MustCompile(`^-?[0-9]{1,18}$`)

func num(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		if integer.MatchString(v) {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
		return int64(len(v))
	}
	return 0
}

func first(s string) string {
	if s == "" {
		return s
	}
	return s[:1]
}

func head(v any) any {
	if v == nil {
		return nil
	}
	s, _, _ := strings.Cut(text(v), ":")
	if s == "" {
		return nil
	}
	return s
}
