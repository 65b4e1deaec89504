//go:build cgo

package main

var clients = []string{"franz", "confluent"}
