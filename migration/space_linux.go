package migration

import "golang.org/x/sys/unix"

func diskOfDirectory(dir string) (id uint64, free int64, known bool) {
	var fs unix.Statfs_t
	var file unix.Stat_t
	if unix.Statfs(dir, &fs) != nil || unix.Stat(dir, &file) != nil {
		return 0, 0, false
	}
	return file.Dev, int64(fs.Bavail) * fs.Bsize, true
}
