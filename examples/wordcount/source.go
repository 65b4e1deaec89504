package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
)

// stdin is the FILE that is standard input.
const stdin = "-"

// content names what a file held when its first line was produced. A file of any name with
// the same bytes is the same file. The file of the same name that begins with them has grown.
type content struct {
	sha  string // of the first size bytes, in hexadecimal
	size int64
	// follows is the name of a file that is followed: two that have the same first line when
	// they are first looked at will become different.
	follows string
}

// source is a file to produce.
type source struct {
	path string
	content
	lines int64 // in it now
	end   int64 // how much of it is to be read
}

// openSource identifies a file by its content: one that was produced under its name before, if
// the file begins with it up to an end of line, or else its own. With follow the file ends,
// for the time being, with its last whole line; one that has none yet has no content.
func openSource(path string, known map[string][]content, follow bool) (source, error) {
	if path == stdin {
		return source{path: stdin, content: content{sha: "stdin-" + rand.Text()}}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return source{}, err
	}
	defer f.Close()
	s := source{path: path}
	if s.end, err = endOf(f, follow); err != nil {
		return source{}, fmt.Errorf("%s: %w", path, err)
	}
	d := &digest{hash: sha256.New(), known: fitting(known[path], s.end)}
	// What is appended from now on is not looked at.
	lines := newLineReader(io.TeeReader(io.NewSectionReader(f, 0, s.end), d))
	if s.lines, err = countLines(lines); err != nil {
		return source{}, fmt.Errorf("%s, line %d: %w", path, s.lines+1, err)
	}
	s.content = content{sha: d.sum(), size: d.size}
	if d.found.size > 0 {
		s.content = d.found
	} else if follow {
		s.follows = path
	}
	return s, nil
}

// endOf gives the size of a file, or where its last whole line ends.
func endOf(f *os.File, wholeLines bool) (int64, error) {
	info, err := f.Stat()
	if err != nil || !wholeLines {
		return info.Size(), err
	}
	buf := make([]byte, 64<<10)
	for end := info.Size(); end > 0; {
		from := max(end-int64(len(buf)), 0)
		n, err := f.ReadAt(buf[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

func countLines(r *lineReader) (n int64, err error) {
	for {
		if _, err := r.next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return n, err
		}
		n++
	}
	if r.rest() != nil {
		n++
	}
	return n, nil
}

// fitting gives the contents with which a file of that size can begin, the shortest first.
func fitting(known []content, size int64) []content {
	fits := slices.DeleteFunc(slices.Clone(known), func(c content) bool { return c.size == 0 || c.size > size })
	slices.SortFunc(fits, func(a, b content) int { return cmp.Compare(a.size, b.size) })
	return fits
}

// digest hashes what is written to it, and finds the longest known content it begins with.
type digest struct {
	hash  hash.Hash
	size  int64
	known []content // not reached yet, the shortest first
	found content
}

// Write takes the next bytes of the file, stopping where a known content ends.
func (d *digest) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		step := len(b)
		if len(d.known) > 0 {
			step = int(min(int64(step), d.known[0].size-d.size))
		}
		d.hash.Write(b[:step])
		d.size += int64(step)
		for len(d.known) > 0 && d.known[0].size == d.size {
			// A last line that was not ended may have grown: then it is another file.
			if b[step-1] == '\n' && d.known[0].sha == d.sum() {
				d.found = d.known[0]
			}
			d.known = d.known[1:]
		}
		b = b[step:]
	}
	return n, nil
}

func (d *digest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }
