//go:build !linux

package migration

func diskOfDirectory(string) (id uint64, free int64, known bool) { return 0, 0, false }
