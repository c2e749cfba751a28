package modelserver

import "testing"

// Holds fails the test when law returns an error three times. On a machine that
// does other things as well a server answers late now and then, and a formula is
// missed by chance; one that is wrong is missed each time.
func Holds(t testing.TB, law func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = law(); err == nil {
			return
		}
		t.Logf("once more: %v", err)
	}
	t.Error(err)
}
