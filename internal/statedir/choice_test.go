package statedir

import "testing"

// A choice stays until it is cleared, over a restart too.
func TestChoice(t *testing.T) {
	root := t.TempDir()
	want := func(want string) {
		t.Helper()
		d, err := Open(root, "app")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Choice(); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		next := map[string]string{"": "use-store", "use-store": "accept-reset"}[want]
		if next == "" {
			err = d.ClearChoice()
		} else {
			err = d.RecordChoice(next)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want("")
	want("use-store")
	want("accept-reset")
	want("")
}
