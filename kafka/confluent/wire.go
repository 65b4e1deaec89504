//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// wire listens to one librdkafka instance. It forwards the instance's log lines, and it
// remembers whether brokers answer: librdkafka's own errors only say "timed out", the
// reason ("connection refused") stands in its log.
type wire struct {
	part    string
	brokers string
	logger  *slog.Logger
	lines   chan ck.LogEvent
	quit    chan struct{} // closed by leave
	done    chan struct{} // closed when the last line was forwarded

	mu       sync.Mutex
	answered bool   // a broker has answered at least once
	trouble  string // the last transport failure since the last answer
}

// newWire starts the forwarding and tells conf to use it. It is ended by close, which
// must be called after the instance's own Close (or if it could not be made).
func newWire(s kafka.Settings, part string, conf ck.ConfigMap) *wire {
	logger := s.Logger
	if logger == nil {
		logger = slog.New(warnings{slog.Default().Handler()})
	}
	w := &wire{part: part, brokers: strings.Join(s.Brokers, ","), logger: logger,
		lines: make(chan ck.LogEvent, 256), quit: make(chan struct{}), done: make(chan struct{})}
	conf["go.logs.channel.enable"] = true
	conf["go.logs.channel"] = w.lines
	go w.forward()
	return w
}

// close ends the forwarding. The library has stopped writing to the channel by then.
func (w *wire) close() {
	close(w.lines)
	<-w.done
}

// leave counts an instance that cannot be closed, and stops listening to it. What the
// library keeps of it (its threads, and the goroutine that waits for log lines) stays.
func (w *wire) leave(instance string) {
	kafka.CountAbandoned()
	w.logger.Warn("a librdkafka consumer with a fatal error cannot be closed and is left behind",
		"client", "confluent", "part", w.part, "instance", instance)
	close(w.quit)
	<-w.done
}

func (w *wire) forward() {
	defer close(w.done)
	for {
		var l ck.LogEvent
		var ok bool
		select {
		case l, ok = <-w.lines:
		case <-w.quit:
		}
		if !ok {
			return
		}
		level := levelOf(l)
		if l.Tag == "FAIL" || l.Tag == "ERROR" {
			w.failed(l.Message)
		}
		w.logger.Log(context.Background(), level, l.Message, "client", "confluent", "part", w.part, "instance", l.Name, "tag", l.Tag)
	}
}

// levelOf translates a syslog level. Transport failures are warnings only: librdkafka
// connects again by itself. Settings that one part does not use are no news, since
// Client.Config goes to all of them.
func levelOf(l ck.LogEvent) slog.Level {
	switch {
	case l.Tag == "CONFWARN":
		return slog.LevelDebug
	case l.Tag == "FAIL" || l.Tag == "ERROR":
		return slog.LevelWarn
	case l.Level <= 3:
		return slog.LevelError
	case l.Level == 4:
		return slog.LevelWarn
	case l.Level <= 6:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// event notes an error event that concerns no call: all of them are informational.
func (w *wire) event(e ck.Error) {
	switch e.Code() {
	case ck.ErrTransport, ck.ErrResolve, ck.ErrTimedOut, ck.ErrAuthentication, ck.ErrSaslAuthenticationFailed:
		w.failed(e.Error())
	case ck.ErrAllBrokersDown:
		if ok, trouble := w.reachable(); ok || trouble == "" {
			w.failed(e.Error()) // else there is a better reason already
		}
	}
	w.logger.Debug(e.Error(), "client", "confluent", "part", w.part, "code", int(e.Code()))
}

func (w *wire) failed(text string) {
	w.mu.Lock()
	w.trouble = text
	w.mu.Unlock()
}

// answer notes that a broker has answered.
func (w *wire) answer() {
	w.mu.Lock()
	w.answered, w.trouble = true, ""
	w.mu.Unlock()
}

// reachable tells whether the last thing heard was an answer, and else the trouble.
func (w *wire) reachable() (ok bool, trouble string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered && w.trouble == "", w.trouble
}

// late gives the error of a call that got no answer in time: unreachable, with addresses
// and the reason, or a plain timeout when brokers do answer.
func (w *wire) late(op, on string, err error) *kafka.Error {
	ok, trouble := w.reachable()
	if ok {
		return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: on, Err: err}
	}
	if trouble != "" {
		err = fmt.Errorf("%w (%s)", err, trouble)
	}
	return &kafka.Error{Class: kafka.ClassUnreachable, Op: op, On: on,
		Err: fmt.Errorf("no broker of %s answers: %w", w.brokers, err)}
}

// fail gives the *kafka.Error for an error of the library.
func (w *wire) fail(op, on string, err error) *kafka.Error {
	var own *kafka.Error
	if errors.As(err, &own) {
		return own
	}
	switch class := classOf(err); class {
	case kafka.ClassTimeout, kafka.ClassUnreachable:
		return w.late(op, on, err)
	default:
		return &kafka.Error{Class: class, Op: op, On: on, Err: err}
	}
}

// warnings drops what is below a warning.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{h.Handler.WithAttrs(a)} }

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
