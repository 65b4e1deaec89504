//go:build !race

package statestore

const every = 1
