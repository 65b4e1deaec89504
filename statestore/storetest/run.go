package storetest

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// Run checks every kind of store in the environments that env gives: a new, empty one for
// each call.
func Run(t *testing.T, env func(t *testing.T) Env) {
	for _, kind := range []struct {
		spec  statestore.Spec
		tests []test
	}{
		{statestore.Spec{Kind: statestore.KindKeyValue}, keyValueTests},
		{statestore.Spec{Kind: statestore.KindTimestampedKeyValue}, keyValueTests},
		{statestore.Spec{Kind: statestore.KindWindow, Retention: 100 * time.Second, WindowSize: time.Second}, windowTests},
		{statestore.Spec{Kind: statestore.KindTimestampedWindow, Retention: 100 * time.Second, WindowSize: time.Second}, windowTests},
		{statestore.Spec{Kind: statestore.KindSession, Retention: 100 * time.Second}, sessionTests},
		{statestore.Spec{Kind: statestore.KindVersioned, Retention: 5 * time.Second}, versionedTests},
	} {
		t.Run(kind.spec.Kind.String(), func(t *testing.T) {
			for _, test := range append(kind.tests, test{"history", history}) {
				t.Run(test.name, func(t *testing.T) { test.run(newRig(t, env(t), kind.spec)) })
			}
		})
	}
	t.Run("window that retains duplicates", func(t *testing.T) {
		spec := statestore.Spec{Kind: statestore.KindWindow, Retention: 100 * time.Second, RetainDuplicates: true}
		t.Run("duplicates", func(t *testing.T) { duplicates(newRig(t, env(t), spec)) })
		t.Run("history", func(t *testing.T) { history(newRig(t, env(t), spec)) })
	})
}

type test struct {
	name string
	run  func(*rig)
}

// awkward are keys that look like something else: nothing, metadata, a store's prefix, the
// end of everything, another key with a time behind it.
var awkward = []string{
	"", "\x00", "\x00\x00", "\x00c", "\x00f", "\x00s", "\x00o", "\x00i", " ", " \x00\x00\x00\x01", " \x00\x00\x00\x01a", "!", "a",
	"a\x00", "a\x00\x00\x00\x00\x00\x00\x00\x05", "a\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00", "a\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05",
	"ab", "b", "\x7f\xff\xff\xff\xff\xff\xff\xff", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xfe", "\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xffa",
}
