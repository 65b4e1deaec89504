//go:build race

package crash

func init() { buildFlags = append(buildFlags, "-race") }
