//go:build cgo

package confluent

import (
	"context"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// guard runs a call that may ignore its context. When the context ended and the call did
// not return within the grace, it is left behind: answered is false, and close will not
// destroy the instance before it returns.
func (n *sender) guard(ctx context.Context, call func(context.Context) error) (answered bool, err error) {
	done := make(chan struct{})
	var result error
	n.calls.Add(1)
	go func() {
		defer n.calls.Done()
		defer close(done)
		result = call(ctx)
	}()
	if inTime(ctx, done) {
		return true, result
	}
	return false, ctx.Err()
}

// inTime waits until done is closed. False: the context has ended, and the grace too.
func inTime(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// resume repeats a call that the library lets one repeat, in slices, so that the end of
// the context is noticed although the library looks at nothing but time limits. They are long
// ones: see resumeAfter.
func resume(ctx context.Context, call func(context.Context) error) error {
	for {
		part, cancel := context.WithTimeout(ctx, resumeAfter)
		err := call(part)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if v, _ := judge(err); v != again {
			return err
		}
		if isCode(err, ck.ErrTimedOut) {
			continue // the slice is over
		}
		if !pause(ctx) {
			return err
		}
	}
}

// metadata asks for a topic, or only whether a broker answers, until one does.
func (n *sender) metadata(ctx context.Context, topic *string) (*ck.Metadata, error) {
	var md *ck.Metadata
	answered, err := n.guard(ctx, func(ctx context.Context) error {
		for {
			answer, err := n.p.GetMetadata(topic, false, milliseconds(slice))
			if err == nil {
				md = answer
				n.wire.answer()
				return nil
			}
			if !pause(ctx) {
				return err
			}
		}
	})
	if !answered {
		return nil, err // the call that is left behind may still write md
	}
	return md, err
}

// pause waits a little before something is tried again. False: the context has ended.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryPause is the pause before something is tried again.
const retryPause = 20 * time.Millisecond
