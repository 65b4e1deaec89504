package franz

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// logger passes on what franz-go says. Without a logger of the user's own only warnings
// and errors are passed, to slog's default.
type logger struct {
	to    *slog.Logger
	level kgo.LogLevel
}

func newLogger(to *slog.Logger) logger {
	if to == nil {
		return logger{slog.Default(), kgo.LogLevelWarn}
	}
	for _, l := range []kgo.LogLevel{kgo.LogLevelDebug, kgo.LogLevelWarn, kgo.LogLevelError} {
		if to.Enabled(context.Background(), slogLevel(l)) {
			return logger{to, l}
		}
	}
	return logger{to, kgo.LogLevelNone}
}

// Level is asked before a message is put together, so a disabled level costs nothing.
func (l logger) Level() kgo.LogLevel { return l.level }

func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	l.to.Log(context.Background(), slogLevel(level), "franz-go: "+msg, keyvals...)
}

func slogLevel(l kgo.LogLevel) slog.Level {
	switch l {
	case kgo.LogLevelError:
		return slog.LevelError
	case kgo.LogLevelWarn:
		return slog.LevelWarn
	}
	// What franz-go tells at its info level (every metadata update and transaction) is detail
	// to the application that uses it.
	return slog.LevelDebug
}
