//go:build unix

package embeddedbroker

import "syscall"

// ownProcessGroup keeps a kill that is meant for the program's process group, kill -9
// included, away from the broker.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
