//go:build !cgo

package main

import (
	"context"
	"errors"
)

func bareConfluent(context.Context, options) (int64, float64, error) {
	return 0, 0, errors.New("confluent needs a build with cgo (a C compiler, and CGO_ENABLED=1)")
}
