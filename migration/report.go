package migration

import "time"

// Report is what a state directory holds of legacy files, and what is (or was) done with it.
// Its JSON form is that of `tidemark migrate --json`.
type Report struct {
	// Tasks in order of their ids. The task with the empty id stands for the application's
	// directory itself, "global" for the global stores.
	Tasks []Task `json:"tasks"`
	// OK: nothing was quarantined, and nothing needs a person.
	OK bool `json:"ok"`
	// Notes are what was found and left alone, one line each.
	Notes []string `json:"-"`
}

// Task is one task directory.
type Task struct {
	// Task is the id: <sub-topology>_<partition>, with <topology>__ before it in a named
	// topology.
	Task      string     `json:"task"`
	Files     []File     `json:"files"`
	Entries   []Entry    `json:"entries"`
	Positions []Position `json:"positions"`

	dir    string
	stores []storeDir
	notes  []string
	// settled says of stores why they take nothing any more.
	settled   map[string]settled
	attention bool
	listing   error // of the directory or a folder in it
	noSpace   error // for the data to move
}

// settled is a store that has what it needs: nothing old is taken over.
type settled struct {
	reason   string
	imported bool // by a migration
}

// FileKind is which legacy file it is.
type FileKind string

// The kinds of files.
const (
	KindCheckpoint      FileKind = "checkpoint"       // .checkpoint of a task, or the global one
	KindCheckpointStore FileKind = "checkpoint_store" // .checkpoint_<store>
	KindPosition        FileKind = "position"         // <store>.position
	KindProcess         FileKind = "process"          // kafka-streams-process-metadata
)

// FileStatus is in what state a file is.
type FileStatus string

// The states of files.
const (
	StatusOK FileStatus = "ok"
	// StatusQuarantined: the content cannot be trusted. The file is kept under another name
	// and treated as absent.
	StatusQuarantined FileStatus = "quarantined"
	// StatusAbsent: there is no such file; with a reason when something else is in its place.
	StatusAbsent FileStatus = "absent"
	// StatusUnreadable: it is there and the system does not let it be read. Nothing is
	// concluded from that: neither file nor data of the task are touched.
	StatusUnreadable FileStatus = "unreadable"
)

// File is one legacy file.
type File struct {
	Path   string     `json:"path"` // begins with the directory as it was given
	Kind   FileKind   `json:"kind"`
	Status FileStatus `json:"status"`
	Reason string     `json:"reason"`

	store     string
	movable   bool // the data of its store is taken over, so the file is done with
	modified  time.Time
	attention bool // a person should look at it, whatever the status
}

// State is what a file says about a changelog partition, and whether it is believed.
type State string

// The states of entries.
const (
	// StateAbsent: no usable offset.
	StateAbsent State = "absent"
	// StateUnknown: clean, at an offset that is not known (-4).
	StateUnknown State = "unknown"
	// StateAt: at NextOffset.
	StateAt State = "at"
	// StateSuspect: the file claims an offset, and nothing proves that the data beside it is
	// not ahead with what an aborted transaction wrote.
	StateSuspect State = "suspect"
)

// Action is what is done for a store.
type Action string

// The actions.
const (
	ActionMigrate Action = "migrate" // the data moves into the task's store, with the offset
	ActionRestore Action = "restore" // the store is restored from its changelog, into an empty store
	ActionSkip    Action = "skip"    // left as it is
	ActionNone    Action = "none"    // concerns no store
)

// Entry is one changelog partition of one store.
type Entry struct {
	Topic      string `json:"topic"` // "" = the store is not logged
	Partition  int32  `json:"partition"`
	State      State  `json:"state"`
	Raw        *int64 `json:"raw"`         // the number in the file
	NextOffset *int64 `json:"next_offset"` // the offset of the next record
	Store      string `json:"store"`       // "" = of no store that is known
	Action     Action `json:"action"`
	Reason     string `json:"reason"`

	attention bool
	own       bool // its line goes into the store's own file
	waits     bool // for a person to say more: the files stay as they are
}

// Position is how far a store has followed a source partition, as a lower bound.
type Position struct {
	Store      string `json:"store"`
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	NextOffset int64  `json:"next_offset"`
	Raw        int64  `json:"raw"` // the last offset seen, as it stands in the file
}
