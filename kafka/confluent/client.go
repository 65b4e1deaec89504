package confluent

import "github.com/tidemark-streams/tidemark/kafka"

// Client makes the parts of a Kafka client on confluent-kafka-go. The zero value is ready
// to use. It holds nothing: each part has its own librdkafka instance.
type Client struct {
	// Config holds further librdkafka settings, by their own names (values: string, bool
	// or int), and is applied last to every part. A setting that would break what the
	// interfaces promise is refused by name when a part is made, with the reason.
	Config map[string]any
}

var _ kafka.Client = Client{}

// Name is "confluent".
func (Client) Name() string { return "confluent" }
