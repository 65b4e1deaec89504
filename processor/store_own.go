package processor

import (
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore"
)

// StoreOpener opens a store of the program's own, which keeps the rows of one store of one task
// in place of the task's database. It is called whenever the task is opened, on one of several
// goroutines; what it gives belongs to the task, which closes it. See [statestore.StateStore].
type StoreOpener func(place StorePlace) (statestore.StateStore, error)

// StorePlace says what a [StoreOpener] opens.
type StorePlace struct {
	TaskID TaskID
	// Store is the store's name.
	Store string
	// Dir is the task's directory, which exists. Files in it go where the task goes; their names
	// should begin with the store's.
	Dir string
}

// IsOwn tells whether the program keeps the store itself: then [Definition.Open] opens one.
func (d Definition) IsOwn() bool { return d.own != nil }

// Open opens the store that a handle's KeptIn names, for one task; nil if it names none.
func (d Definition) Open(place StorePlace) (own statestore.StateStore, err error) {
	if d.own == nil {
		return nil, nil
	}
	err = guard(func() (err error) {
		own, err = (*d.own)(place)
		return err
	})
	if err == nil && own == nil {
		err = errors.New("the function that opens it gives nil")
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s of task %v in %s: %w", place.Store, place.TaskID, place.Dir, err)
	}
	return own, nil
}
