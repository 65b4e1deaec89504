//go:build !linux

package main

import "time"

// What is measured on Linux only is 0 elsewhere.

func evict(string) bool { return false }

func cpuTime() time.Duration { return 0 }

func maxRSS() int64 { return 0 }

func watchDescriptors() func() int { return func() int { return 0 } }
