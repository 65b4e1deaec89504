//go:build cgo

package confluent

import (
	"strings"
	"testing"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Tokens that each client gets by itself go to the host's own clients with their settings; those that only the consumer would have are refused.
func TestOAuthBearer(t *testing.T) {
	with := func(more ck.ConfigMap) *ck.ConfigMap {
		all := ck.ConfigMap{"bootstrap.servers": "localhost:1", "group.id": "g", "security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}
		for k, v := range more {
			all[k] = v
		}
		return &all
	}
	for _, refused := range []ck.ConfigMap{nil, {"sasl.oauthbearer.method": "default"}, {unsecured: false}} {
		if _, err := read(with(refused)); err == nil || !strings.Contains(err.Error(), "SetOAuthBearerToken") {
			t.Errorf("%v: %v", refused, err)
		}
	}
	for _, shared := range []ck.ConfigMap{{"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "me"}, {unsecured: "true"}} {
		s, err := read(with(shared))
		if err != nil {
			t.Errorf("%v: %v", shared, err)
		}
		for k, v := range *with(shared) {
			if strings.Contains(k, "sasl") && s.rest[k] != v {
				t.Errorf("%s=%v does not reach the host's own clients, which have %v", k, v, s.rest[k])
			}
		}
	}
	if _, err := read(&ck.ConfigMap{"bootstrap.servers": "localhost:1", "group.id": "g", "sasl.mechanisms": "SCRAM-SHA-512"}); err != nil {
		t.Error(err)
	}
}
