package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSteps: a step says how fast it is, and how much of the backup is read.
func TestSteps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &steps{w: &world{stderr: &out}}
	s.progress("copy the database", 0)
	s.reads(100, 400)
	s.reading = time.Now().Add(-10 * time.Second)
	s.progress("post", 1000)
	s.progress("post", 2000) // within the second
	s.began, s.told = time.Now().Add(-10*time.Second), time.Time{}
	s.progress("post", 51_000)
	s.reads(400, 400)
	s.progress("compare post", 10)
	require.Regexp(t, `^copy the database
post 1000; 25 % of the backup read, \d+s left
post 51000, \d+ a second; 25 % of the backup read, \d+s left
compare post 10
$`, out.String())
}
