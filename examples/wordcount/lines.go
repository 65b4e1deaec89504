package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is produced as one record; a longer one is divided
// between two words.
const maxLine = 256 << 10

// lineReader divides its input into lines. Where a line begins depends on nothing but the
// bytes before it, so that a line's number means the same in every run.
type lineReader struct {
	r   *bufio.Reader
	buf []byte // what was read and not given out yet
	pos int    // in buf
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// next gives the next line without its end, valid until the next call. At the end of the
// input it gives io.EOF, and what is there without an end of line stays for later: more
// may be appended. rest gives it out.
func (l *lineReader) next() ([]byte, error) {
	for {
		if line, err := l.cut(); line != nil || err != nil {
			return line, err
		}
		l.buf = append(l.buf[:0], l.buf[l.pos:]...)
		l.pos = 0
		chunk, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, chunk...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(chunk) > 0 {
				continue
			}
			return nil, err
		}
	}
}

// cut takes a whole line from the buffer; nil: there is none.
func (l *lineReader) cut() ([]byte, error) {
	have := l.buf[l.pos:]
	window := have[:min(len(have), maxLine)]
	if i := bytes.IndexByte(window, '\n'); i >= 0 {
		l.pos += i + 1
		return window[:i:i], nil
	}
	if len(have) < maxLine {
		return nil, nil
	}
	i := bytes.LastIndexFunc(window, func(r rune) bool { return !isWord(r) })
	if i < 0 {
		return nil, fmt.Errorf("a word of more than %d bytes: this is no text", maxLine)
	}
	l.pos += i + 1
	return window[: i+1 : i+1], nil
}

// rest gives what follows the last end of line; nil: nothing.
func (l *lineReader) rest() []byte {
	have := l.buf[l.pos:]
	l.pos = len(l.buf)
	if len(have) == 0 {
		return nil
	}
	return have
}
