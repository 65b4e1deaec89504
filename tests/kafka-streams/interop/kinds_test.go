package interop

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

const (
	windowSize = 10 * time.Second
	sessionGap = 3 * time.Second
	retention  = time.Hour
	// around is how far before and behind a window others are looked for.
	around = 20 * time.Second
)

var (
	windows        = processor.Window("windows", serde.String, serde.Int64, windowSize, retention)
	stampedWindows = processor.TimestampedWindow("stamped-windows", serde.String, serde.String, windowSize, retention)
	duplicates     = processor.Window("duplicates", serde.String, serde.String, windowSize, retention).RetainDuplicates()
	sessions       = processor.Session("sessions", serde.String, serde.Int64, retention)
	versions       = processor.Versioned("versions", serde.String, serde.String, retention)

	allStores = []string{"counts", "plain", "stamped", "windows", "stamped-windows", "duplicates", "sessions", "versions"}
)

type (
	textContext = processor.Context[string, string]
	textRecord  = processor.Record[string, string]
)

// kinds keeps each record in a store of every other kind, and says what they have then. A null
// deletes. The times of versions are mirrored, see Interop.java.
func kinds(ctx textContext, r textRecord) error {
	text, err := kindsOf(ctx, r)
	if err != nil {
		return err
	}
	return ctx.Forward(processor.WithValue(r, text))
}

func kindsOf(ctx processor.StoreContext, r textRecord) (string, error) {
	var said []string
	for _, f := range []func(processor.StoreContext, textRecord) (string, error){inWindows, inDuplicates, inSessions, inVersions} {
		text, err := f(ctx, r)
		if err != nil {
			return "", err
		}
		said = append(said, text)
	}
	return strings.Join(said, " "), nil
}

func windowStart(t time.Time) time.Time {
	return time.UnixMilli(t.UnixMilli() - t.UnixMilli()%windowSize.Milliseconds())
}

func inWindows(ctx processor.StoreContext, r textRecord) (string, error) {
	windows, stamped, start := windows.In(ctx), stampedWindows.In(ctx), windowStart(r.Timestamp)
	n, _, err := windows.Get(r.Key, start)
	if err != nil {
		return "", err
	}
	if !r.HasValue() {
		if err := windows.Delete(r.Key, start); err != nil {
			return "", err
		}
		err = stamped.Delete(r.Key, start, r.Timestamp)
	} else {
		if err := windows.Put(r.Key, n+1, start); err != nil {
			return "", err
		}
		err = stamped.Put(r.Key, r.Value, start, r.Timestamp.Add(-7*time.Second))
	}
	if err != nil {
		return "", err
	}
	var all []string
	for w, err := range windows.Fetch(r.Key, start.Add(-around), start.Add(around)) {
		if err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%d:%d", w.Start.UnixMilli(), w.Value))
	}
	for w, err := range stamped.ReverseFetch(r.Key, start.Add(-around), start.Add(around)) {
		if err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%s@%d", w.Value, w.Timestamp.UnixMilli()))
	}
	return strings.Join(all, ","), nil
}

func inDuplicates(ctx processor.StoreContext, r textRecord) (string, error) {
	s, start := duplicates.In(ctx), windowStart(r.Timestamp)
	if r.HasValue() {
		if err := s.Put(r.Key, r.Value, start); err != nil {
			return "", err
		}
	}
	var all []string
	for w, err := range s.Fetch(r.Key, start, start) {
		if err != nil {
			return "", err
		}
		all = append(all, w.Value)
	}
	return strings.Join(all, ","), nil
}

func inSessions(ctx processor.StoreContext, r textRecord) (string, error) {
	s, start, end, count, touching := sessions.In(ctx), r.Timestamp, r.Timestamp, int64(1), 0
	for x, err := range s.Find(r.Key, start.Add(-sessionGap), end.Add(sessionGap)) {
		if err != nil {
			return "", err
		}
		if x.Start.Before(start) {
			start = x.Start
		}
		if x.End.After(end) {
			end = x.End
		}
		touching++
		count += x.Value
		if err := s.Remove(r.Key, x.Start, x.End); err != nil { // the loop goes on over what was there
			return "", err
		}
	}
	if r.HasValue() {
		if err := s.Put(r.Key, count, start, end); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d:%d-%d:%d", touching, start.UnixMilli(), end.UnixMilli(), count), nil
}

func inVersions(ctx processor.StoreContext, r textRecord) (string, error) {
	s, at := versions.In(ctx), time.UnixMilli(mirror-r.Timestamp.UnixMilli())
	var was string
	if r.HasValue() {
		p, err := s.Put(r.Key, r.Value, at)
		if err != nil {
			return "", err
		}
		was = "-1"
		if !p.Current {
			was = fmt.Sprint(p.ValidTo.UnixMilli())
		}
	} else {
		var err error
		if was, err = showVersion(s.Delete(r.Key, at)); err != nil {
			return "", err
		}
	}
	now, err := showVersion(s.Get(r.Key))
	if err != nil {
		return "", err
	}
	before, err := showVersion(s.GetAsOf(r.Key, at.Add(-10*time.Second)))
	return was + "/" + now + "/" + before, err
}

func showVersion(v processor.Version[string, string], ok bool, err error) (string, error) {
	switch {
	case err != nil || !ok:
		return "none", err
	}
	return fmt.Sprintf("%s@%d", v.Value, v.From.UnixMilli()), nil
}
