package embedded

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

func TestUnloggedIsForAtLeastOnce(t *testing.T) {
	c := Config{App: "a", StateDir: t.TempDir(), Stores: []processor.StoreDef{processor.KeyValue("local", serde.String, serde.Int64).Unlogged()}}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Guarantee = ExactlyOnce
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "Stores[0]: store local") {
		t.Errorf("error %v", err)
	}
}
