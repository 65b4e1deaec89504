//go:build !unix

package report

import "time"

// CPU is not measured here.
func CPU() time.Duration { return 0 }

// PeakRSS is not measured here.
func PeakRSS() int64 { return 0 }
