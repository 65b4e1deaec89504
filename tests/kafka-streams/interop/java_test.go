package interop

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// javaProgram gives the class path of the compiled Interop.java, made once.
var javaProgram = sync.OnceValues(func() (string, error) {
	lib, err := jars()
	if err != nil {
		return "", err
	}
	classes := filepath.Join(scratch, "classes")
	path := filepath.Join(lib, "*")
	compile := exec.Command("java", "-cp", path, "org.eclipse.jdt.internal.compiler.batch.Main", "-17", "-nowarn", "-classpath", jarList(lib), "-d", classes, "Interop.java")
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile Interop.java: %w\n%s", err, out)
	}
	return path + string(os.PathListSeparator) + classes, nil
})

// jars gives the folder of the jars of pom.xml, which are fetched once for each pom.
func jars() (string, error) {
	pom, err := os.ReadFile("pom.xml")
	if err != nil {
		return "", err
	}
	cache := os.Getenv("TIDEMARK_KAFKA_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, "tidemark")
	}
	lib := filepath.Join(cache, fmt.Sprintf("interop-%x", sha256.Sum256(pom))[:24])
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// Renamed when it is whole, so that an interrupted download leaves nothing behind.
	work, err := os.MkdirTemp(cache, "interop-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	fetch := exec.Command("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(work, "lib"))
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch Kafka Streams: %w\n%s", err, out)
	}
	err = os.Rename(filepath.Join(work, "lib"), lib)
	if _, there := os.Stat(lib); there == nil {
		return lib, nil // by us, or by somebody else at the same time
	}
	return "", err
}

func jarList(lib string) string {
	list, _ := filepath.Glob(filepath.Join(lib, "*.jar"))
	return strings.Join(list, string(os.PathListSeparator))
}

// kafkaStreams is a running Interop.java.
type kafkaStreams struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer // to be read when the process has ended
	ended  chan struct{}

	mu    sync.Mutex
	lines []string
	news  chan struct{} // closed and replaced at every line
}

// kafkaStreams starts the application on Kafka Streams. settings are of the form KEY=VALUE.
func (e *env) kafkaStreams(state string, settings ...string) *kafkaStreams {
	e.t.Helper()
	path, err := javaProgram()
	if err != nil {
		e.t.Fatal(err)
	}
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", path, "Interop",
		"bootstrap=" + e.b.Addrs[0], "app=" + e.app, "counts=" + e.counts, "pairs=" + e.pairs, "histories=" + e.histories, "kinds=" + e.kinds, fmt.Sprint("mirror=", mirror), fmt.Sprint("shift=", e.shift),
		"state.dir=" + state, "processing.guarantee=" + e.javaGuarantee()}
	if !e.half {
		args = append(args, "words="+e.words)
	}
	k := &kafkaStreams{t: e.t, cmd: exec.Command("java", append(args, settings...)...), ended: make(chan struct{}), news: make(chan struct{})}
	k.cmd.Stderr = &k.stderr
	if k.stdin, err = k.cmd.StdinPipe(); err != nil {
		e.t.Fatal(err)
	}
	stdout, err := k.cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	go k.listen(stdout)
	e.t.Cleanup(func() {
		_ = k.cmd.Process.Kill()
		<-k.ended
		if e.t.Failed() {
			e.t.Logf("Kafka Streams printed:\n%s\n%s", strings.Join(k.printed(), "\n"), k.stderr.String())
		}
	})
	return k
}

// listen collects the output until the program ends.
func (k *kafkaStreams) listen(stdout io.Reader) {
	defer close(k.ended)
	s := bufio.NewScanner(stdout)
	for s.Scan() {
		k.mu.Lock()
		k.lines = append(k.lines, s.Text())
		close(k.news)
		k.news = make(chan struct{})
		k.mu.Unlock()
	}
	_ = k.cmd.Wait()
}

func (k *kafkaStreams) printed() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lines)
}

// await waits for a line that begins so, and gives it.
func (k *kafkaStreams) await(prefix string) string {
	k.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		k.mu.Lock()
		lines, news := k.lines, k.news
		k.mu.Unlock()
		for _, l := range lines {
			if strings.HasPrefix(l, prefix) {
				return l
			}
		}
		select {
		case <-news:
		case <-k.ended:
			if slices.Equal(lines, k.printed()) {
				k.t.Fatalf("Kafka Streams ended without %q", prefix)
			}
		case <-deadline.C:
			k.t.Fatalf("Kafka Streams did not print %q in %v", prefix, patience)
		}
	}
}

// close ends it: with "leave" it leaves the group, with "remain" it does what
// KafkaStreams.close() does, which leaves the members in the group until they time out.
func (k *kafkaStreams) close(how string) {
	k.t.Helper()
	if _, err := fmt.Fprintln(k.stdin, how); err != nil {
		k.t.Fatal(err)
	}
	k.await("closed true")
	<-k.ended
	k.neverFailed()
}

// kill ends it with SIGKILL.
func (k *kafkaStreams) kill() {
	k.t.Helper()
	if err := k.cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	<-k.ended
}

func (k *kafkaStreams) neverFailed() {
	k.t.Helper()
	for _, l := range k.printed() {
		if strings.HasPrefix(l, "failed ") {
			k.t.Errorf("Kafka Streams: %s", l)
		}
	}
}

// restored gives how many records were restored into each store.
func (k *kafkaStreams) restored() map[string]int {
	out := map[string]int{}
	for _, l := range k.printed() {
		var store string
		var partition, n int
		if _, err := fmt.Sscanf(l, "restored %s %d %d", &store, &partition, &n); err == nil {
			out[store] += n
		}
	}
	return out
}

// firstTimes gives, for each partition of which it has read a record, the time that it knew
// of the partition before.
func (k *kafkaStreams) firstTimes() map[partition]int64 {
	out := map[partition]int64{}
	for _, l := range k.printed() {
		var tp partition
		var offset, known int64
		if _, err := fmt.Sscanf(l, "first %s %d %d %d", &tp.topic, &tp.number, &offset, &known); err == nil {
			out[tp] = known
		}
	}
	return out
}

// needJava skips the test where Kafka Streams cannot run, unless it must.
func needJava(t *testing.T) {
	t.Helper()
	var lacks []error
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			lacks = append(lacks, err)
		}
	}
	switch err := errors.Join(lacks...); {
	case err == nil:
	case os.Getenv("TIDEMARK_REQUIRE_REAL") != "":
		t.Fatalf("TIDEMARK_REQUIRE_REAL is set, but Kafka Streams cannot run: %v", err)
	default:
		t.Skipf("Kafka Streams needs Java 17 and Maven: %v", err)
	}
}
