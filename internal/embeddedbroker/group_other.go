//go:build !unix

package embeddedbroker

import "syscall"

func ownProcessGroup() *syscall.SysProcAttr { return nil }
