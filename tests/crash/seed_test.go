package crash

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/franz"
)

// seedSteps are those of writing a store into its changelog again, up to the commit that makes it count.
var seedSteps = []string{"seed-begun", "seed-piece", "seeded", "start-committed"}

// The changelog is deleted and created again, and whoever writes the stores into it is killed at each step. After that
// the disk is lost too: everything comes back from the new changelog.
func TestKillWhileAChangelogIsWrittenAgain(t *testing.T) {
	for _, guarantee := range guaranteesOf(t) {
		for _, step := range seedSteps {
			t.Run(step+"/"+guarantee, func(t *testing.T) {
				t.Parallel()
				killWhileSeeding(newWorld(t, newInput(t, random(t), 300), guarantee), step)
			})
		}
	}
}

func TestKillWhileAChangelogIsWrittenAgainOnKafka(t *testing.T) {
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			w := newWorld(t, newInput(t, random(t), 300), "exactly-once")
			w.client = client
			w.onKafka()
			killWhileSeeding(w, "seed-piece")
		})
	}
}

func killWhileSeeding(w *world, step string) {
	w.t.Helper()
	w.finish()
	w.deleteChangelog()
	w.repeat++
	w.dieAt(step)
	w.dieAt(step)
	w.finish()
	dirs, err := filepath.Glob(filepath.Join(w.stateDir(), w.app, "*_*"))
	if err != nil || len(dirs) == 0 {
		w.t.Fatalf("task directories %q, %v", dirs, err)
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			w.t.Fatal(err)
		}
	}
	w.repeat++
	w.finish()
}

func (w *world) deleteChangelog() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	settings, disconnect := w.connect(ctx)
	defer disconnect()
	admin, err := franz.Client{}.NewAdmin(settings)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = admin.Close(ctx) }()
	testbroker.RemoveTopic(w.t, admin, w.app+"-counts-changelog")
}
