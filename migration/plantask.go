package migration

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

// taskPlan is the work on one task directory.
type taskPlan struct {
	*Task
	app application
	id  taskID
	o   Options

	checkpoint File
	lines      []offsetfile.Line // of the task's .checkpoint
	// own is the content of .checkpoint_<store>, by store.
	own map[string][]offsetfile.Line
	// seen is what each store's .position file says.
	seen map[string][]offsetfile.Line
	// left is what storesLeft gave when the files were read: a file can have a million lines.
	left map[string]bool
	// wasMigrated: a .checkpoint was dealt with before.
	wasMigrated bool
	// believed: an offset of .checkpoint is that of the data beside it.
	believed bool
}

func planTask(a application, d taskDir, o Options) Task {
	p := &taskPlan{app: a, id: d.id, o: o, own: map[string][]offsetfile.Line{}, seen: map[string][]offsetfile.Line{},
		Task: &Task{Task: d.id.String(), Files: []File{}, Entries: []Entry{}, Positions: []Position{}, dir: d.path}}
	var err error
	if p.stores, err = findStores(d.path); err != nil {
		p.notListed(err)
	}
	p.nameGoka()
	p.readFiles()
	p.left = p.storesLeft()
	p.lookIntoStore()
	p.believed = p.trusted()
	p.takePositions()
	p.takeGoka()
	p.takeOwnEntries()
	p.takeEntries()
	p.takeStoresWithoutEntry()
	slices.SortStableFunc(p.Entries, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Store, y.Store))
	})
	slices.SortStableFunc(p.Positions, func(x, y Position) int {
		return cmp.Or(cmp.Compare(x.Store, y.Store), cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	return *p.Task
}

// notListed: a folder that cannot be listed can hold data and files of any store, so nothing is concluded
// of the task, nor done, until it can.
func (p *taskPlan) notListed(err error) {
	p.listing, p.attention = errors.Join(p.listing, err), true
	p.notes = append(p.notes, fmt.Sprintf("%s: %v", p.dir, err))
}

// readFiles reads every legacy file of the directory.
func (p *taskPlan) readFiles() {
	var content offsetfile.Content
	p.checkpoint, content = readOffsetFile(filepath.Join(p.dir, checkpointName), KindCheckpoint)
	p.lines = slices.Concat(content.Entries, content.Skipped)
	p.Files = append(p.Files, p.checkpoint)
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		p.notListed(err)
	}
	for _, e := range entries {
		p.wasMigrated = p.wasMigrated || strings.HasPrefix(e.Name(), checkpointName+migratedSuffix)
		store, kind, ok := p.storeFile(e.Name())
		if !ok || isDir(p.dir, e) && isWindowFolder(p.stores, e.Name()) {
			continue
		}
		f, content := readOffsetFile(filepath.Join(p.dir, e.Name()), kind)
		f.store = store
		p.Files = append(p.Files, f)
		if kind == KindPosition {
			p.seen[store] = content.Entries
		} else {
			p.own[store] = slices.Concat(content.Entries, content.Skipped)
		}
	}
}

func isWindowFolder(stores []storeDir, name string) bool {
	return slices.ContainsFunc(stores, func(d storeDir) bool { return d.store == name && filepath.Base(d.path) == name })
}

// storeFile takes the store out of the names .checkpoint_<store> and <store>.position. A
// file that was being written (.tmp), or that was set aside, is none.
func (p *taskPlan) storeFile(name string) (store string, kind FileKind, ok bool) {
	if strings.HasSuffix(name, temporarySuffix) || isSetAside(name) {
		return "", "", false
	}
	store, isPosition := strings.CutSuffix(name, positionSuffix)
	if isPosition {
		if _, onDisk := p.storeDir(store); onDisk { // also one that is called .checkpoint_x
			return store, KindPosition, true
		}
	}
	if own, ok := strings.CutPrefix(name, storeCheckpoint); ok {
		return own, KindCheckpointStore, own != ""
	}
	return store, KindPosition, isPosition && store != ""
}

// trusted tells whether the offsets of the task's .checkpoint are believed. A global store
// has no transactions: what its data is ahead is written again.
func (p *taskPlan) trusted() bool {
	return p.id.global || p.o.Guarantee == AtLeastOnce || p.o.CleanShutdown ||
		p.listing == nil && closedCleanly(p.stores, p.checkpoint.modified)
}

func (p *taskPlan) takePositions() {
	for i := range p.Files {
		f := &p.Files[i]
		if f.Kind != KindPosition {
			continue
		}
		for _, l := range p.seen[f.store] {
			next, ok := nextOf(l.Offset, false)
			if l.Offset < 0 || !ok {
				f.Reason = fmt.Sprintf("%s skipped: the offset %d is no position", l.TopicPartition(), l.Offset)
				continue
			}
			p.Positions = append(p.Positions, Position{Store: f.store, Topic: l.Topic, Partition: l.Partition, NextOffset: next, Raw: l.Offset})
		}
	}
}

// takeOwnEntries: .checkpoint_<store> is the file of a store that cannot keep offsets
// itself. Kafka Streams has it under exactly-once only after a clean close (it is removed when
// the store is opened), so there it is believed; another program need not do so.
func (p *taskPlan) takeOwnEntries() {
	for i := range p.Files {
		f := &p.Files[i]
		if f.Kind != KindCheckpointStore {
			continue
		}
		f.movable = p.movable(f.store) && !p.isGoka(f.store) && f.Status == StatusOK
		for _, l := range p.own[f.store] {
			e := p.entry(l, f.store, !f.movable || p.believed)
			if store, ok := p.convention(l.Topic); ok && store != f.store {
				e = p.foreign(l, fmt.Sprintf("the file is that of store %q, the changelog that of store %q", f.store, store))
			}
			if f.movable {
				p.decide(&e, "")
			} else if e.Store != "" && e.State != StateAbsent {
				e.Action, e.Reason = ActionSkip, "a store with a file of its own: the file stays, and goes on with the store"
			}
			p.Entries = append(p.Entries, e)
		}
	}
}

func (p *taskPlan) takeEntries() {
	for _, l := range p.lines {
		stores, how := p.storesOf(l)
		if len(stores) == 0 {
			p.Entries = append(p.Entries, p.foreign(l, how))
			continue
		}
		for _, store := range stores {
			e := p.entry(l, store, p.believed)
			if len(p.own[store]) > 0 && e.Store != "" {
				e.Action, e.Reason = ActionSkip, "the store has a newer file of its own, "+storeCheckpoint+store
			} else if p.isGoka(store) && e.Action == "" {
				e.Action, e.Reason = ActionSkip, "the store's database has an offset of its own"
			} else {
				p.decide(&e, how)
			}
			p.Entries = append(p.Entries, e)
		}
	}
}

// entry converts a line, and gives a foreign one when the line is not this task's.
func (p *taskPlan) entry(l offsetfile.Line, store string, believed bool) Entry {
	if !p.id.global && l.Partition != p.id.partition {
		return p.foreign(l, fmt.Sprintf("an entry of partition %d in a task of partition %d", l.Partition, p.id.partition))
	}
	e := Entry{Topic: l.Topic, Partition: l.Partition, Raw: &l.Offset, Store: store}
	next, ok := nextOf(l.Offset, p.id.global)
	switch {
	case l.Offset == offsetfile.Unknown:
		e.State = StateUnknown
		return e
	case l.Offset < 0:
		e.State, e.Action = StateAbsent, ActionSkip
		e.Reason = fmt.Sprintf("the offset %d means nothing", l.Offset)
		return e
	case !ok:
		e.State, e.Reason = StateAbsent, "no offset can follow this one"
		return e
	case believed:
		e.State = StateAt
	default:
		e.State = StateSuspect
	}
	e.NextOffset = &next
	return e
}

// foreign is an entry that is kept, reported and never applied.
func (p *taskPlan) foreign(l offsetfile.Line, reason string) Entry {
	e := Entry{Topic: l.Topic, Partition: l.Partition, Raw: &l.Offset, State: StateAbsent, Action: ActionNone, Reason: reason}
	if l.Offset == offsetfile.Unknown {
		e.State = StateUnknown
	} else if next, ok := nextOf(l.Offset, p.id.global); ok && l.Offset >= 0 {
		e.NextOffset, e.State = &next, StateAt
		if !p.believed {
			e.State = StateSuspect
		}
	}
	return e
}
