package task

import "github.com/tidemark-streams/tidemark/kafka"

// Action is what a worker does about an error of the client.
type Action uint8

const (
	// Retry the same call.
	Retry Action = iota
	// Rejoin: the tasks are lost; drop them, wait for the membership, take over again.
	Rejoin
	// Reload the worker's tasks: drop what is not committed, initialise the transactional id,
	// go through the take-over order again.
	Reload
	// FailTask: the task (and in this version the application) stops with the error.
	FailTask
	// FailApp: nothing of this application can work.
	FailApp
)

var actionNames = [...]string{"retry", "rejoin", "reload", "fail task", "fail app"}

// String names the action.
func (a Action) String() string { return actionNames[a] }

// Decide maps the class of an error to the action. It is the only place that does.
func Decide(c kafka.ErrorClass) Action {
	switch c {
	case kafka.ClassRetriable, kafka.ClassIllegalGeneration:
		// The generation is refreshed and the call repeated inside the same transaction.
		return Retry
	case kafka.ClassUnknownMember, kafka.ClassInstanceFenced:
		// Whether the instance id is really taken the membership knows, not the commit.
		return Rejoin
	case kafka.ClassAbortable, kafka.ClassFenced, kafka.ClassInDoubt, kafka.ClassUnreachable, kafka.ClassTimeout, kafka.ClassFatal, kafka.ClassClosed:
		// A client that is of no use any more is made anew by Init.
		return Reload
	case kafka.ClassOffsetOutOfRange, kafka.ClassTooLarge:
		return FailTask
	case kafka.ClassUnknownTopic, kafka.ClassTopicExists, kafka.ClassUnauthorized, kafka.ClassTransactionsUnavailable, kafka.ClassInvalid:
		return FailApp
	}
	return FailApp
}
