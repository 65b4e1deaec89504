//go:build !cgo

package main

import (
	"context"
	"errors"
)

func confluentLoop(context.Context, options, *meter) error {
	return errors.New("-client confluent needs a build with cgo (a C compiler, and CGO_ENABLED=1)")
}
