package embeddedbroker

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A fetch that ends because it is full, in the middle of an aborted transaction, still says which transactions were
// aborted: a reader of committed records must see none of them.
func TestFullFetchHidesWhatWasAborted(t *testing.T) {
	b := startBroker(t, Options{Dir: t.TempDir()})
	createTopic(t, b.Addr(), "in", 2)
	client := newClient(t, b.Addr(), kgo.TransactionalID("x"), kgo.DefaultProduceTopic("in"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(2000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for n := range 20 {
		end := kgo.TransactionEndTry(n%2 == 0)
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			r := &kgo.Record{Partition: int32(i % 2), Value: bytes.Repeat([]byte(fmt.Sprint(end)), 200)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	for _, most := range []int32{1000, 3000, 5000, 11_000, 30_000} {
		reader := newClient(t, b.Addr(), kgo.ConsumeTopics("in"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxBytes(most), kgo.FetchMaxPartitionBytes(most))
		seen := 0
		for seen < 200 {
			fetches := reader.PollFetches(t.Context())
			if err := fetches.Err(); err != nil {
				t.Fatal(err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if seen++; !bytes.HasPrefix(r.Value, []byte("true")) {
					t.Fatalf("with %d bytes a fetch: %d@%d was aborted", most, r.Partition, r.Offset)
				}
			})
		}
		reader.Close()
	}
}
