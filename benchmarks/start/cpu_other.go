//go:build !unix

package main

func cpuMillis() float64 { return 0 }
