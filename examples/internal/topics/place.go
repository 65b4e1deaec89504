package topics

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
)

// Place gives an example its folder and brokers, separated by commas: a temporary folder, and a broker in it, where none is said. leave ends what
// was made.
func Place(ctx context.Context, folder, brokers string) (dir string, seeds []string, leave func() error, err error) {
	var made []func() error
	leave = func() (err error) {
		for i := len(made) - 1; i >= 0; i-- {
			err = errors.Join(err, made[i]())
		}
		return err
	}
	if dir = folder; dir == "" {
		if dir, err = os.MkdirTemp("", "tidemark-example-"); err != nil {
			return "", nil, nil, err
		}
		made = append(made, func() error { return os.RemoveAll(dir) })
	}
	if brokers == "" {
		b, err := embeddedbroker.Start(ctx, embeddedbroker.Options{Dir: filepath.Join(dir, "broker")})
		if err != nil {
			return "", nil, nil, errors.Join(err, leave())
		}
		made = append(made, b.Close)
		brokers = b.Addr()
	}
	return dir, strings.Split(brokers, ","), leave, nil
}
