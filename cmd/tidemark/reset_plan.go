package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/offsetcache"
)

// resetPlan is what a reset deletes, and what it leaves though its name could be the
// application's. It is also the JSON form of the result.
type resetPlan struct {
	App         string          `json:"app"`
	DryRun      bool            `json:"dry_run"`
	Group       bool            `json:"group"`
	Offsets     int             `json:"offsets"`
	Topics      []internalTopic `json:"topics"`
	Directories []string        `json:"directories"`
	Others      []internalTopic `json:"topics_of_others"`
}

type internalTopic struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	App        string `json:"app"`
}

const placementSuffix = "-placement"

// isInternal tells whether a name is that of an internal topic of some application.
func isInternal(topic string) bool {
	for _, suffix := range []string{"-changelog", "-repartition", placementSuffix} {
		if strings.HasSuffix(topic, suffix) {
			return true
		}
	}
	return false
}

// newResetPlan finds the internal topics. Their names begin with the application id, but so do those
// of an application "orders-eu" for "orders": a topic belongs to the longest id that is known to
// exist, by its group or its placement topic.
func newResetPlan(app string, topics kadm.TopicDetails, groups kadm.ListedGroups) *resetPlan {
	p := &resetPlan{App: app, Topics: []internalTopic{}, Directories: []string{}, Others: []internalTopic{}}
	known := map[string]bool{}
	for name := range groups {
		known[name] = true
	}
	for name := range topics {
		if id, ok := strings.CutSuffix(name, placementSuffix); ok {
			known[id] = true
		}
	}
	for _, t := range topics.Sorted() {
		if !strings.HasPrefix(t.Topic, app+"-") || !isInternal(t.Topic) {
			continue
		}
		owner := app
		for id := range known {
			if len(id) > len(owner) && strings.HasPrefix(t.Topic, id+"-") {
				owner = id
			}
		}
		x := internalTopic{t.Topic, len(t.Partitions), owner}
		if owner == app {
			p.Topics = append(p.Topics, x)
		} else {
			p.Others = append(p.Others, x)
		}
	}
	return p
}

// refuseMembers gives an error that names the members of a group that has some.
func refuseMembers(g kadm.DescribedGroup) error {
	if len(g.Members) == 0 {
		return nil
	}
	var who []string
	for _, m := range g.Members {
		name := m.MemberID
		if m.InstanceID != nil {
			name = *m.InstanceID
		}
		who = append(who, fmt.Sprintf("%s on %s", name, m.ClientHost))
	}
	return fmt.Errorf("group %s has %d member(s): %s: stop the application everywhere, and wait until the sessions are over (10 s by default, with a consumer of your own its session and rebalance timeouts)", g.Group, len(who), strings.Join(who, ", "))
}

// carryOut deletes. The group comes first: the broker refuses that if a member has come meanwhile,
// and an application that starts between the steps finds topics or stores without offsets, and stops.
func (p *resetPlan) carryOut(ctx context.Context, adm *kadm.Client, local *localState) error {
	if p.Group {
		r, err := adm.DeleteGroup(ctx, p.App)
		if err == nil {
			err = r.Err
		}
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return fmt.Errorf("delete group %s: %w", p.App, err)
		}
	}
	if err := local.remove(); err != nil {
		return err
	}
	var names []string
	for _, t := range p.Topics {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return nil
	}
	deleted, err := adm.DeleteTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	for _, d := range deleted.Sorted() {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			err = errors.Join(err, fmt.Errorf("delete topic %s: %w", d.Topic, d.Err))
		}
	}
	if err != nil {
		return err
	}
	return awaitGone(ctx, adm, names)
}

// shownFor is how long a broker may go on showing topics that it has answered to be deleted.
const shownFor = 30 * time.Second

// awaitGone returns when the broker shows the topics no more. An application that started before would take them for its own,
// and lose them under its feet.
func awaitGone(ctx context.Context, adm *kadm.Client, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, shownFor)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		shown, err := adm.ListTopics(ctx, names...)
		if err == nil {
			if names = slices.DeleteFunc(names, func(name string) bool { return !shown.Has(name) }); len(names) == 0 {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the topics are deleted, but the broker still shows %s: let no process of the application start before they are gone (tidemark reset --dry-run shows them)", strings.Join(names, ", ")), err)
		}
	}
}

// localState is the application's directory on this host, locked; nil where there is none.
type localState struct{ dir *statedir.Dir }

// aboveApp gives the state directory that is meant by one that may be the application's own.
func aboveApp(dir, app string) (string, error) {
	abs, err := filepath.Abs(dir)
	if dir == "" || err != nil || !statedir.LooksLikeApp(abs) {
		return dir, err
	}
	if id := filepath.Base(abs); id != app {
		return "", fmt.Errorf("%s is the directory of application %s: give the state directory that %s is in", dir, id, app)
	}
	return filepath.Dir(abs), nil
}

// openLocal locks the directory, if it exists.
func openLocal(stateDir, app string) (*localState, error) {
	if stateDir == "" {
		return &localState{}, nil
	}
	if _, err := os.Stat(filepath.Join(stateDir, app)); errors.Is(err, fs.ErrNotExist) {
		return &localState{}, nil
	}
	d, err := statedir.Open(stateDir, app)
	if err != nil {
		return nil, err
	}
	return &localState{d}, nil
}

// removable tells whether all directories of tasks can be removed: that is known before anything is deleted anywhere.
func (l *localState) removable() error {
	if l.dir == nil {
		return nil
	}
	return l.dir.Removable(offsetcache.Removable)
}

// directories gives those of tasks.
func (l *localState) directories() ([]string, error) {
	out := []string{}
	if l.dir == nil {
		return out, nil
	}
	tasks, err := l.dir.TaskDirs()
	for _, id := range tasks {
		out = append(out, l.dir.TaskDir(id))
	}
	return out, err
}

func (l *localState) remove() error {
	if l.dir == nil {
		return nil
	}
	if err := l.dir.RemoveAll(offsetcache.Removable); err != nil {
		return err
	}
	return l.dir.BeginAnew()
}

func (l *localState) close() error {
	if l.dir == nil {
		return nil
	}
	return l.dir.Close()
}
