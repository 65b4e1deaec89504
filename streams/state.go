package streams

// State is where an [App] is in its life:
//
//	created -> starting -> restoring -> running -> closing -> closed
//	               ^           |           |
//	               +-----------+-----------+   (the group gave the place away: start again)
//
// From every state but the last two it can become failed.
type State uint8

const (
	// Created: New was called, Run was not.
	Created State = iota
	// Starting: topics are checked, the group is joined. A process that does not hold the
	// placement partition stays here.
	Starting
	// Restoring: tasks are opened and brought to the group's offsets.
	Restoring
	// Running: all tasks process records.
	Running
	// Closing: what was processed is being committed.
	Closing
	// Closed: Run has returned nil.
	Closed
	// Failed: Run has returned an error.
	Failed
)

var stateNames = [...]string{"created", "starting", "restoring", "running", "closing", "closed", "failed"}

// String names the state.
func (s State) String() string { return stateNames[s] }

// State gives the present state.
func (a *App) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

func (a *App) setState(to State) {
	a.follow.Lock()
	defer a.follow.Unlock()
	a.enter(to)
}

// enter goes to a state and tells the listener. a.follow is held.
func (a *App) enter(to State) {
	a.mu.Lock()
	from := a.state
	if from == to || from == Closed || from == Failed || (from == Closing && to < Closing) { // a worker that comes late
		a.mu.Unlock()
		return
	}
	a.state = to
	a.mu.Unlock()
	a.log.Info("state", "from", from.String(), "to", to.String())
	if a.cfg.StateListener != nil {
		a.cfg.StateListener(from, to)
	}
	a.notify()
}
