// Package must shortens tests: what a call returns, where an error ends the test.
package must

import "testing"

// Get gives the value of a call of which no error is expected; with one, the test ends as by t.Fatal:
//
//	raw := must.Get(json.Marshal(v))(t)
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return value
	}
}
