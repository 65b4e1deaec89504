package migration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

// readOffsetFile reads one legacy file. It follows a symbolic link, opens nothing but
// regular files, and never fails: what is wrong is in the file's status and reason.
func readOffsetFile(path string, kind FileKind) (File, offsetfile.Content) {
	f := File{Path: path, Kind: kind}
	r, ok := open(&f)
	if !ok {
		return f, offsetfile.Content{}
	}
	defer r.Close()
	content, err := offsetfile.Parse(r)
	var system *fs.PathError
	switch {
	case errors.As(err, &system): // the disk, not the content
		f.Status, f.Reason = StatusUnreadable, err.Error()
		return f, offsetfile.Content{}
	case err != nil:
		f.Status, f.Reason = StatusQuarantined, err.Error()
		return f, offsetfile.Content{}
	}
	f.Status = StatusOK
	if n := len(content.Skipped); n > 0 {
		e := content.Skipped[0]
		f.Reason = fmt.Sprintf("%d of %d entries skipped: %s has the offset %d, which means nothing",
			n, n+len(content.Entries), e.TopicPartition(), e.Offset)
	}
	return f, content
}

// open sets status and reason where there is nothing to read.
func open(f *File) (io.ReadCloser, bool) {
	f.Status = StatusAbsent
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(f.Path); err == nil {
			f.Reason = "a symbolic link to nothing"
		}
		return nil, false
	case err != nil:
		f.Status, f.Reason = StatusUnreadable, err.Error()
		return nil, false
	case info.IsDir():
		f.Reason, f.attention = "a directory is in its place: left alone", true
		return nil, false
	case !info.Mode().IsRegular():
		f.Reason, f.attention = "not a regular file: left alone", true
		return nil, false
	}
	r, err := os.Open(f.Path)
	if err != nil {
		f.Status, f.Reason = StatusUnreadable, err.Error()
		return nil, false
	}
	f.modified = info.ModTime()
	return r, true
}

// readProcessFile looks whether the process file of Kafka Streams is in order. Nothing of it
// is taken over: a static member of Tidemark has an id of its own.
func readProcessFile(path string) File {
	f := File{Path: path, Kind: KindProcess}
	r, ok := open(&f)
	if !ok {
		return f
	}
	defer r.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		f.Status, f.Reason = StatusUnreadable, err.Error()
		return f
	}
	var content struct {
		ProcessID string `json:"processId"` // other fields are to be ignored
	}
	if err := json.Unmarshal(text, &content); err != nil {
		f.Status, f.Reason = StatusQuarantined, "not the JSON that Kafka Streams writes: "+err.Error()
		return f
	}
	if !uuidForm.MatchString(content.ProcessID) {
		f.Status, f.Reason = StatusQuarantined, fmt.Sprintf("processId %s is not a UUID", offsetfile.Shown([]byte(content.ProcessID)))
		return f
	}
	f.Status = StatusOK
	return f
}
