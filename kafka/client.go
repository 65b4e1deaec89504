package kafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"
)

// Settings are what every client of one application shares. The zero value of each
// field but Brokers is a working default. Settings that only one library knows are
// fields of that library's Client.
type Settings struct {
	// Brokers are the bootstrap addresses, host:port. At least one.
	Brokers []string
	// ClientID is the prefix of the client ids that brokers log. Default "tidemark".
	ClientID string
	// TLS, if not nil, encrypts connections.
	TLS *tls.Config
	// SASL, if its Mechanism is not empty, authenticates them.
	SASL SASL
	// Compression of produced batches: "" or "none", "gzip", "snappy", "lz4", "zstd".
	Compression string
	// Linger is how long a producer waits for a batch to fill. Default 5 ms.
	Linger time.Duration
	// RequestTimeout bounds one request to a broker. Default 10 s.
	RequestTimeout time.Duration
	// FetchMaxBytes bounds what one consumer buffers ahead of Poll. Default 32 MiB.
	FetchMaxBytes int
	// Logger receives what the library says. Default: discarded below warnings,
	// slog.Default() for the rest.
	Logger *slog.Logger
}

// SASL names a mechanism and its credentials.
type SASL struct {
	// Mechanism is "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512"; empty means none.
	Mechanism string
	Username  string
	Password  string
}

// Client makes the parts that the core uses. Implementations: franz.Client and
// confluent.Client, both usable as zero values. A part is closed by whoever opened it.
// None of the constructors waits for a broker: an unreachable one is reported by the
// first call that needs it, within that call's context.
type Client interface {
	// Name is "franz" or "confluent".
	Name() string
	NewAdmin(Settings) (Admin, error)
	NewConsumer(Settings, ConsumerConfig) (Consumer, error)
	NewProducer(Settings, ProducerConfig) (Producer, error)
	NewTransactional(Settings, TransactionalConfig) (Transactional, error)
	NewMembership(Settings, MembershipConfig) (Membership, error)
}

// Closer is the way every part ends. Close returns by the context's deadline; what the
// library keeps beyond it is abandoned, counted ([Abandoned]) and named in the error.
type Closer interface {
	Close(ctx context.Context) error
}
