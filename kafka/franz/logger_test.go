package franz

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What franz-go calls info is detail to the application: it shows at the debug level only.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	for _, c := range []struct {
		level slog.Level
		want  kgo.LogLevel
	}{{slog.LevelDebug, kgo.LogLevelDebug}, {slog.LevelInfo, kgo.LogLevelWarn}, {slog.LevelWarn, kgo.LogLevelWarn}, {slog.LevelError, kgo.LogLevelError}, {slog.LevelError + 4, kgo.LogLevelNone}} {
		l := newLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: c.level})))
		if l.Level() != c.want {
			t.Errorf("a logger for %v makes franz-go talk at %v, want %v", c.level, l.Level(), c.want)
		}
	}
	newLogger(slog.New(slog.NewTextHandler(&out, nil))).Log(kgo.LogLevelWarn, "trouble", "broker", 3)
	if s := out.String(); !strings.Contains(s, "level=WARN") || !strings.Contains(s, "trouble") || !strings.Contains(s, "broker=3") {
		t.Errorf("logged %q", s)
	}
	if l := newLogger(nil); l.Level() != kgo.LogLevelWarn {
		t.Errorf("without a logger franz-go talks at %v, want warnings", l.Level())
	}
}
