package migration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Which directory is the application's, by what lies in it and not by names alone.
func TestFindApplication(t *testing.T) {
	for name, c := range map[string]struct {
		dirs []string // below the root
		give string
		o    Options
		want string // "" = refused
	}{
		"state directory":                         {[]string{"app/0_0"}, "", Options{App: "app"}, "app"},
		"application's own":                       {[]string{"app/0_0"}, "app", Options{App: "app"}, "app"},
		"application's own, by itself":            {[]string{"app/0_0"}, "app", Options{}, "app"},
		"one only":                                {[]string{"app/0_0"}, "", Options{}, "app"},
		"state directory called like it":          {[]string{"app/app/0_0"}, "app", Options{App: "app"}, "app/app"},
		"stray folder called like it":             {[]string{"app/0_0", "app/app"}, "app", Options{App: "app"}, "app"},
		"copy inside, and the name of both":       {[]string{"app/0_0", "app/app/0_0"}, "app", Options{App: "app"}, ""},
		"copy inside, held":                       {[]string{"app/0_0", "app/app/0_0"}, "app", Options{App: "app", Held: true}, "app"},
		"copy inside, no id":                      {[]string{"app/0_0", "app/app/0_0"}, "app", Options{}, "app"},
		"stray task beside it":                    {[]string{"app/0_0", "0_0"}, "", Options{App: "app"}, "app"},
		"folder of a task called like it":         {[]string{"x/0_0/rocksdb"}, "x", Options{App: "0_0"}, "x"},
		"called like the folder of global stores": {[]string{"x/global/rocksdb", "x/0_0"}, "x", Options{App: "global"}, "x"},
		"empty":          {[]string{"app"}, "", Options{App: "app"}, "app"},
		"empty, held":    {[]string{"app/app"}, "app", Options{App: "app", Held: true}, "app"},
		"none":           {[]string{"other/0_0"}, "", Options{App: "app"}, ""},
		"outside":        {[]string{"state", "app/0_0"}, "state", Options{App: "../app"}, ""},
		"two":            {[]string{"a/0_0", "b/0_0"}, "", Options{}, ""},
		"two, one named": {[]string{"a/0_0", "b/0_0"}, "", Options{App: "b"}, "b"},
		"by the process file of Kafka Streams only": {[]string{"app/app"}, "app", Options{App: "app"}, "app"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range c.dirs {
				must(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
			}
			if strings.Contains(name, "process file") {
				must(t, os.WriteFile(filepath.Join(root, "app", processName), nil, 0o600))
			}
			a, err := find(filepath.Join(root, c.give), c.o)
			if (err != nil) != (c.want == "") || err == nil && a.path != filepath.Join(root, c.want) {
				t.Errorf("%s, %v; want %s", a.path, err, c.want)
			}
		})
	}
}
