package embedded

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := testbroker.Leaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
