//go:build !unix

package failpoint

func stopSelf() { panic("a process cannot stop itself on this system") }
