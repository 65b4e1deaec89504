package franz

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
)

// The mechanism of the user's client is that of the host's own too, so that a function which gives tokens gives them to all.
func TestSharedMechanism(t *testing.T) {
	asked := errors.New("asked for a token")
	tokens := oauth.Oauth(func(context.Context) (oauth.Auth, error) { return oauth.Auth{}, asked })
	o, err := read([]kgo.Opt{kgo.SeedBrokers("localhost:1"), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"), kgo.SASL(tokens)})
	if err != nil {
		t.Fatal(err)
	}
	own, err := kgo.NewClient(o.shared...)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	var mechanisms []sasl.Mechanism
	value(own, kgo.SASL, &mechanisms)
	if len(mechanisms) != 1 || mechanisms[0].Name() != "OAUTHBEARER" {
		t.Fatalf("the host's own clients have %v", mechanisms)
	}
	if _, _, err := mechanisms[0].Authenticate(t.Context(), "localhost:1"); !errors.Is(err, asked) {
		t.Errorf("the user's function was not asked: %v", err)
	}
}
