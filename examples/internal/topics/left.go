package topics

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Left gives how many records of topics a group has before it: from what it has committed, which an earlier run that was killed may
// have left behind, to the ends. It waits for no transaction: one that a killed run has open comes to nothing.
func Left(ctx context.Context, brokers []string, group string, names ...string) (n int, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err != nil {
		return 0, err
	}
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return 0, err
	}
	ends.Each(func(end kadm.ListedOffset) {
		at := int64(0) // these topics are never trimmed
		if o, ok := committed.Lookup(end.Topic, end.Partition); ok {
			at = max(o.At, 0)
		}
		n += int(end.Offset - at)
	})
	return n, nil
}
