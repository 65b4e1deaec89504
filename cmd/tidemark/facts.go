package main

import (
	"encoding/hex"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// The result of inspect. docs/cli.md documents the JSON; names and meanings stay.
type (
	inspection struct {
		Path     string         `json:"path"`
		Apps     []inspectedApp `json:"apps"`
		Other    []string       `json:"other,omitempty"`
		Problems int            `json:"problems"`
	}
	inspectedApp struct {
		App   string          `json:"app"`
		Path  string          `json:"path"`
		InUse string          `json:"in_use,omitempty"`
		Lock  *lockFacts      `json:"lock,omitempty"`
		Tasks []inspectedTask `json:"tasks"`
		Aside []asideTask     `json:"set_aside,omitempty"`
		Trash []trashedTask   `json:"trash,omitempty"`
		// Legacy is what belongs to no task.
		Legacy []legacyFile `json:"legacy,omitempty"`
		Other  []string     `json:"other,omitempty"`
	}
	lockFacts struct {
		PID   int        `json:"pid"`
		Host  string     `json:"host"`
		Start *time.Time `json:"start,omitempty"`
	}
	trashedTask struct {
		Task  string `json:"task,omitempty"`
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
	}
	legacyFile struct {
		Path   string `json:"path"` // below the task's directory, or the application's
		Kind   string `json:"kind"`
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
		Store  string `json:"store,omitempty"`
		Engine string `json:"engine,omitempty"`
	}
	asideTask struct {
		Task   string `json:"task"`
		Path   string `json:"path"`
		Reason string `json:"reason,omitempty"`
	}
	inspectedTask struct {
		Task       string       `json:"task"`
		Path       string       `json:"path"`
		Status     string       `json:"status"`
		Problem    string       `json:"problem,omitempty"`
		Bytes      int64        `json:"bytes"`
		OtherFiles []string     `json:"other_files,omitempty"`
		Legacy     []legacyFile `json:"legacy,omitempty"`
		Store      *taskFacts   `json:"store,omitempty"`
	}
	taskFacts struct {
		FormatVersion uint32           `json:"format_version"`
		ID            string           `json:"id"`
		Created       *time.Time       `json:"created,omitempty"`
		Commit        commitFacts      `json:"commit"`
		StreamTime    *int64           `json:"stream_time"`
		Positions     []positionFacts  `json:"positions"`
		Owner         *ownerFacts      `json:"owner,omitempty"`
		Imports       []importFacts    `json:"imports,omitempty"`
		Log           logFacts         `json:"log"`
		Stores        []inspectedStore `json:"stores"`
	}
	commitFacts struct {
		Epoch  int64      `json:"epoch"`
		Number int64      `json:"number"`
		Time   *time.Time `json:"time,omitempty"`
	}
	positionFacts struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Next      int64  `json:"next"`
	}
	ownerFacts struct {
		Process string     `json:"process"`
		Last    *time.Time `json:"last,omitempty"`
	}
	importFacts struct {
		Store  string     `json:"store"`
		Source string     `json:"source"`
		Time   *time.Time `json:"time,omitempty"`
	}
	logFacts struct {
		Keys    int64 `json:"keys"`
		Batches int64 `json:"batches"`
		Bytes   int64 `json:"bytes"`
	}
	inspectedStore struct {
		Name             string      `json:"name"`
		Kind             string      `json:"kind"`
		Changelog        string      `json:"changelog,omitempty"`
		ChangelogID      string      `json:"changelog_id,omitempty"`
		KeySerde         string      `json:"key_serde,omitempty"`
		ValueSerde       string      `json:"value_serde,omitempty"`
		SchemaVersion    uint32      `json:"schema_version,omitempty"`
		RetentionMs      int64       `json:"retention_ms,omitempty"`
		WindowSizeMs     int64       `json:"window_size_ms,omitempty"`
		RetainDuplicates bool        `json:"retain_duplicates,omitempty"`
		InMemory         bool        `json:"in_memory,omitempty"`
		External         bool        `json:"external,omitempty"`
		Committed        offsetFacts `json:"committed_offset"`
		Durable          offsetFacts `json:"durable_offset"`
		Complete         bool        `json:"complete"`
		Replaying        bool        `json:"replaying,omitempty"`
		Forgotten        bool        `json:"forgotten,omitempty"`
		Migrating        bool        `json:"migrating,omitempty"`
		Rows             int64       `json:"rows"`
		RowsExact        bool        `json:"rows_exact"`
		Bytes            int64       `json:"bytes"`
	}
	offsetFacts struct {
		State string `json:"state"` // absent, unknown, at
		Next  *int64 `json:"next,omitempty"`
	}
)

func factsOf(v *statestore.View) (*taskFacts, error) {
	m, o := v.Metadata(), v.OpenStats()
	f := &taskFacts{
		FormatVersion: m.FormatVersion, ID: hex.EncodeToString(m.ID[:]), Created: timeOr(m.Created),
		Commit:    commitFacts{Epoch: m.CommitID.Epoch, Number: m.CommitID.Number, Time: timeOr(m.Committed)},
		Positions: []positionFacts{}, Stores: []inspectedStore{},
		Log: logFacts{Keys: o.ReplayedKeys, Batches: o.ReplayedBatches, Bytes: o.ReplayedBytes},
	}
	if m.StreamTime != statestore.NoStreamTime {
		f.StreamTime = &m.StreamTime
	}
	if m.Owner != (statestore.Owner{}) {
		f.Owner = &ownerFacts{Process: m.Owner.ProcessID, Last: timeOr(m.Owner.Last)}
	}
	for _, p := range m.Positions {
		f.Positions = append(f.Positions, positionFacts(p))
	}
	for _, x := range m.Imports {
		f.Imports = append(f.Imports, importFacts{x.Store, x.Source, timeOr(x.Time)})
	}
	for _, s := range m.Stores {
		var size statestore.StoreSize
		if !s.External { // else nobody here knows
			var err error
			if size, err = v.Size(s.Spec.Name); err != nil {
				return f, err
			}
		}
		f.Stores = append(f.Stores, storeFacts(s, size))
	}
	return f, nil
}

func storeFacts(s statestore.StoreMetadata, size statestore.StoreSize) inspectedStore {
	x := inspectedStore{
		Name: s.Spec.Name, Kind: s.Spec.Kind.String(), Changelog: s.Spec.Changelog, KeySerde: s.Spec.KeySerde, ValueSerde: s.Spec.ValueSerde,
		SchemaVersion: s.Spec.SchemaVersion, RetentionMs: s.Spec.Retention.Milliseconds(), WindowSizeMs: s.Spec.WindowSize.Milliseconds(),
		RetainDuplicates: s.Spec.RetainDuplicates, InMemory: s.Spec.InMemory, External: s.External,
		Committed: offsetOf(s.Offset), Durable: offsetOf(s.Offset), // nothing runs: what is committed is on the disk
		Complete: s.Complete, Replaying: s.Replaying, Forgotten: s.Forgotten, Migrating: s.Migrating, Rows: size.Rows, RowsExact: size.Exact, Bytes: size.Bytes,
	}
	if s.Spec.ChangelogID != [16]byte{} {
		x.ChangelogID = hex.EncodeToString(s.Spec.ChangelogID[:])
	}
	return x
}

func offsetOf(o statestore.Offset) offsetFacts {
	if next, ok := o.Next(); ok {
		return offsetFacts{State: "at", Next: &next}
	}
	if o.IsUnknown() {
		return offsetFacts{State: "unknown"}
	}
	return offsetFacts{State: "absent"}
}

// timeOr leaves out a time that is not known, or that JSON cannot say.
func timeOr(t time.Time) *time.Time {
	t = t.UTC()
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}
