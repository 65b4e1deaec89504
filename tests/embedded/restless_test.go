package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// Assignments by hand that change again before the one before is through lose nothing and do nothing twice.
func TestRestlessAssign(t *testing.T) {
	for _, d := range handDoors {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, testbroker.Kfake(t), door{name: d.name})
			x := w.watch()
			l, err := d.open(w.b.Addrs, w.app+"-group", w.config(t.TempDir(), embedded.ExactlyOnce))
			if err != nil {
				t.Fatal(err)
			}
			m := w.assigned(l, func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }, 0, 1, 2, 3)
			stop := w.feed()
			r := testseed.New(t)
			for range 40 {
				var numbers []int32
				for p := range int32(4) {
					if r.IntN(3) > 0 {
						numbers = append(numbers, p)
					}
				}
				if err := l.assign(context.Background(), w.in, numbers...); err != nil {
					t.Fatal(err)
				}
				pause := time.NewTimer(time.Duration(r.IntN(60)) * time.Millisecond) // a restore takes some of these
				<-pause.C
			}
			stop()
			if err := l.assign(context.Background(), w.in, 0, 1, 2, 3); err != nil {
				t.Fatal(err)
			}
			eventually(t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) || l.Err() != nil })
			if err := l.Err(); err != nil {
				t.Error(err)
			}
			m.leave()
			x.check(t, w.seq, embedded.ExactlyOnce)
		})
	}
}
