package metrics_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/metrics"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ metrics.App  = (*streams.App)(nil)
	_ metrics.Host = (*embedded.Host)(nil)
	_ metrics.Host = (*franz.Host)(nil)
)

// app tells what a test says.
type app struct {
	status streams.Status
	stores statestore.ResourceStats
	local  []offsetcache.Task
	scan   *offsetcache.Scan
}

func (a *app) Status() streams.Status               { return a.status }
func (a *app) StoreStats() statestore.ResourceStats { return a.stores }
func (a *app) LocalOffsets() []offsetcache.Task     { return a.local }
func (a *app) Scan() *offsetcache.Scan              { return a.scan }

// busy is an application of which everything can be told.
func busy() *app {
	at := statestore.At
	restoring := task.TaskStatus{ID: processor.TaskID{Partition: 1}, Restore: []task.RestoreStatus{
		{Store: "counts", From: 10, Next: 40, End: 100, Records: 25, Rate: 12.5, Started: time.Now().Add(-time.Hour), ExpectedEnd: time.UnixMilli(1_700_000_000_500)},
		{Store: "seen", From: 0, Next: 7, End: 7, Records: 7, Rate: 14, Started: time.Now(), Took: 500 * time.Millisecond}}}
	running := task.TaskStatus{ID: processor.TaskID{Subtopology: 1, Partition: 0}, Dropped: 3, Committed: map[kafka.TopicPartition]int64{{Topic: "in"}: 5},
		Changelog: map[string]statestore.Offset{"counts": at(120), "seen": at(8), "unlogged": {}},
		Durable:   map[string]statestore.Offset{"counts": at(100), "seen": {}, "unlogged": {}}}
	replaying := task.TaskStatus{ID: processor.TaskID{Subtopology: 1, Partition: 1}, Replay: task.ReplayStatus{Started: time.Now()}, Committed: running.Committed}
	return &app{
		status: streams.Status{State: streams.Running, Workers: []task.Status{
			{Name: "1", State: "running", Processed: 1000, Commits: 10, CommitTime: 250 * time.Millisecond, Tasks: []task.TaskStatus{running, replaying, {ID: processor.TaskID{Partition: 7}}, {ID: processor.TaskID{Partition: 8}, Failed: errors.New("why"), Committed: running.Committed}}},
			{Name: "2", State: "restoring", Tasks: []task.TaskStatus{restoring}},
			{Name: "3", State: "closed", Tasks: []task.TaskStatus{{ID: processor.TaskID{Partition: 9}, Committed: running.Committed}}},
			{Name: "4"},
		}},
		stores: statestore.ResourceStats{TaskStores: 2, Cache: statestore.CacheStats{BudgetBytes: 1000, Bytes: 600, HeldBytes: 700, Hits: 90, Misses: 10, Evictions: 5, UnappliedBytes: 50},
			BlockCacheBytes: 11, BlockCacheHits: 12, BlockCacheMisses: 13, MemTableBytes: 14},
		local: []offsetcache.Task{{ID: "1_0", Latest: true, Offsets: []offsetcache.Offset{{Store: "counts", Offset: at(120)}, {Store: "unknown"}}}, {ID: "2_0"}},
		scan: &offsetcache.Scan{Opened: 3, Empty: 1, Elapsed: 2 * time.Second, ReplayedBytes: 99, Failed: []offsetcache.ScanFailure{
			{Err: fmt.Errorf("open: %w", statestore.ErrCorrupt)}, {Err: fmt.Errorf("other: %w", statestore.ErrCorrupt)}, {Err: fs.ErrPermission}, {Err: errors.New("no idea")}}},
	}
}

// metricsOf gives what a collector collects, a line for each series, without its help.
func metricsOf(t *testing.T, c prometheus.Collector) map[string]string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			got[strings.TrimSpace(strings.TrimPrefix(f.GetName(), "tidemark_")+" "+strings.Join(labels, " "))] = fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
		}
	}
	return got
}

func TestApp(t *testing.T) {
	got := metricsOf(t, metrics.New(busy()))
	for series, want := range map[string]string{
		"app_state state=running": "1", "app_state state=failed": "0", "app_state state=created": "0",
		"workers state=running": "1", "workers state=restoring": "1", "workers state=closed": "1", "workers state=new": "1", "workers state=opening": "0",
		"worker_processed_records_total worker=1": "1000", "worker_commits_total worker=1": "10", "worker_commit_seconds_total worker=1": "0.25", "worker_commits_total worker=4": "0",
		"tasks state=running": "1", "tasks state=restoring": "1", "tasks state=replaying": "1", "tasks state=opening": "1", "tasks state=closed": "1", "tasks state=failed": "1",
		"task_dropped_records_total task=1_0":         "3",
		"task_unsynced_offsets store=counts task=1_0": "20", "task_unsynced_offsets store=seen task=1_0": "8", "task_unsynced_offsets store=unlogged task=1_0": "",
		"restore_records store=counts task=0_1": "25", "restore_remaining_offsets store=counts task=0_1": "60", "restore_records_per_second store=counts task=0_1": "12.5",
		"restore_expected_end_timestamp_seconds store=counts task=0_1": "1.7000000005e+09", "restore_expected_end_timestamp_seconds store=seen task=0_1": "",
		"restore_remaining_offsets store=seen task=0_1": "0", "restore_seconds store=seen task=0_1": "0.5",
		"local_tasks latest=true": "1", "local_tasks latest=false": "1", "local_changelog_offset store=counts task=1_0": "120", "local_changelog_offset store=unknown task=1_0": "",
		"scan_seconds": "2", "scan_directories found=state": "3", "scan_directories found=nothing": "1", "scan_directories found=failure": "4", "scan_replayed_bytes": "99",
		"scan_failures reason=corrupt": "2", "scan_failures reason=permission": "1", "scan_failures reason=other": "1", "scan_failures reason=locked": "0",
		"task_stores": "2", "cache_budget_bytes": "1000", "cache_bytes": "600", "cache_held_bytes": "700", "cache_unapplied_bytes": "50", "cache_hits_total": "90", "cache_misses_total": "10", "cache_evictions_total": "5",
		"block_cache_bytes": "11", "block_cache_hits_total": "12", "block_cache_misses_total": "13", "memtable_bytes": "14", "abandoned_databases_total": "0", "abandoned_clients_total": "0",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %q", series, got[series], want)
		}
	}
}

// An application that was never run has a state, and no zeros for what is not known.
func TestAppBeforeRun(t *testing.T) {
	got := metricsOf(t, metrics.New(&app{}))
	if got["app_state state=created"] != "1" {
		t.Errorf("%v", got)
	}
	for series := range got {
		if strings.HasPrefix(series, "scan") || strings.HasPrefix(series, "local") {
			t.Errorf("%s, though nothing was read yet", series)
		}
	}
}

// host is one of the embedded form.
type host struct {
	status task.Status
	*app
}

func (h host) Status() task.Status         { return h.status }
func (h host) Offsets() []offsetcache.Task { return h.local }

func TestHost(t *testing.T) {
	got := metricsOf(t, metrics.NewHost(host{app: &app{}}))
	for series := range got {
		if strings.HasPrefix(series, "worker") || strings.HasPrefix(series, "tasks") || strings.HasPrefix(series, "local") || strings.HasPrefix(series, "scan") {
			t.Errorf("%s before the first assignment", series)
		}
	}
	all := busy()
	got = metricsOf(t, metrics.NewHost(host{all.status.Workers[0], all}))
	if got["worker_commits_total worker=1"] != "10" || got["tasks state=running"] != "1" || got["task_stores"] != "2" || got["local_tasks latest=true"] != "1" {
		t.Errorf("%v", got)
	}
	for series := range got {
		if strings.HasPrefix(series, "app_state") {
			t.Errorf("%s of a host", series)
		}
	}
	if got["scan_seconds"] == "" || got["scan_directories found=failure"] == "" {
		t.Errorf("nothing of the scan: %v", got)
	}
}

func TestNamesAreGoodAndDocumented(t *testing.T) {
	problems, err := testutil.CollectAndLint(metrics.New(busy()))
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	table, alerts, _ := strings.Cut(string(doc), "Worth an alert")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 4 {
			for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				documented[name[1]] = true
			}
		}
	}
	have := map[string]bool{}
	for series := range metricsOf(t, metrics.New(busy())) {
		name, _, _ := strings.Cut(series, " ")
		have[name] = true
		if !documented[name] {
			t.Errorf("docs/metrics.md does not name %s", name)
		}
	}
	for name := range documented {
		if !have[name] {
			t.Errorf("docs/metrics.md names %s, which is not there", name)
		}
	}
	for _, name := range regexp.MustCompile(`[a-z]+(?:_[a-z]+)+`).FindAllString(alerts, -1) {
		if !have[name] {
			t.Errorf("docs/metrics.md uses %s, which is not there", name)
		}
	}
}

// However many errors there are, the series are those of the table (M1).
func TestSeriesAreBounded(t *testing.T) {
	a := busy()
	was := len(metricsOf(t, metrics.New(a)))
	for i := range 1000 {
		a.scan.Failed = append(a.scan.Failed, offsetcache.ScanFailure{Directory: offsetcache.Directory{Path: fmt.Sprint("/state/", i)}, Err: fmt.Errorf("error %d", i)})
	}
	if n := len(metricsOf(t, metrics.New(a))); n != was {
		t.Errorf("%d series became %d", was, n)
	}
	for i := range 100 {
		a.status.Workers[0].Tasks = append(a.status.Workers[0].Tasks, task.TaskStatus{ID: processor.TaskID{Subtopology: 5, Partition: int32(i)}})
	}
	if n := len(metricsOf(t, metrics.New(a))); n != was+100 {
		t.Errorf("%d series became %d with 100 tasks more", was, n)
	}
}
