package task

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// Every class has a row: a new one must be decided about here.
func TestDecide(t *testing.T) {
	want := map[kafka.ErrorClass]Action{
		kafka.ClassFatal: Reload, kafka.ClassRetriable: Retry, kafka.ClassUnreachable: Reload, kafka.ClassTimeout: Reload,
		kafka.ClassAbortable: Reload, kafka.ClassFenced: Reload, kafka.ClassInDoubt: Reload, kafka.ClassIllegalGeneration: Retry,
		kafka.ClassUnknownMember: Rejoin, kafka.ClassInstanceFenced: Rejoin, kafka.ClassOffsetOutOfRange: FailTask,
		kafka.ClassUnknownTopic: FailApp, kafka.ClassTopicExists: FailApp, kafka.ClassTooLarge: FailTask, kafka.ClassUnauthorized: FailApp,
		kafka.ClassTransactionsUnavailable: FailApp, kafka.ClassInvalid: FailApp, kafka.ClassClosed: Reload,
	}
	for c := kafka.ClassFatal; c <= kafka.ClassClosed; c++ {
		if _, ok := want[c]; !ok {
			t.Errorf("no row for class %v", c)
		}
		if got := Decide(c); got != want[c] {
			t.Errorf("%v: %v, want %v", c, got, want[c])
		}
	}
	if got := Decide(kafka.ClassClosed + 1); got != FailApp {
		t.Errorf("an unknown class: %v", got)
	}
}

func TestDisposition(t *testing.T) {
	tooLarge := &kafka.Error{Class: kafka.ClassTooLarge}
	for _, c := range []struct {
		err  error
		want Action
	}{
		{fmt.Errorf("commit: %w", ErrLost), Rejoin},
		{&Error{Task: processor.TaskID{}, Err: errors.New("disk full")}, FailTask},
		{&Error{Task: processor.TaskID{}, Err: tooLarge}, FailTask},
		{fmt.Errorf("commit: %w", &kafka.Error{Class: kafka.ClassInDoubt}), Reload},
		{errors.New("unknown"), FailApp},
	} {
		if got := disposition(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
