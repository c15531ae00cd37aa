// Package must shortens tests: what a call returns, where an error ends the test.
package must

import (
	"encoding/json"
	"testing"
)

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

// Err gives the error of a call of which nothing else is looked at.
func Err[T any](_ T, err error) error { return err }

// JSON gives the value that a document holds.
func JSON[T any](raw []byte) func(testing.TB) T {
	var v T
	err := json.Unmarshal(raw, &v)
	return Get(v, err)
}
