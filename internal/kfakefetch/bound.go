package kfakefetch

import (
	"math"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// largestBatch is what a broker takes at most by default, and a little more.
const largestBatch = 1<<20 + 1<<10

// ByPartition lets no response to a fetch become full: kfake then leaves out which transactions were aborted in the
// partition at which it stops, and a reader of committed records takes them for committed. In place of the bound of the
// response each partition has one, which is large enough for a batch.
func ByPartition(cluster *kfake.Cluster) {
	cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) { // the form is kfake's
		req := r.(*kmsg.FetchRequest)
		req.MaxBytes = math.MaxInt32
		for _, topic := range req.Topics {
			for i := range topic.Partitions {
				p := &topic.Partitions[i]
				p.PartitionMaxBytes = min(p.PartitionMaxBytes, largestBatch)
			}
		}
		return nil, nil, false
	})
}
