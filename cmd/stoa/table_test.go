package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What another server said is in a table without steering the terminal.
func TestTable_Plain(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := newTable(&out)
	fmt.Fprintf(table, "a\t%s\tend\n", "\x1b[2Jgone\r\u202eevil\u009b1m")
	fmt.Fprintf(table, "हिन्दी\t%s\tend\n", "क्\u200dष")
	require.NoError(t, table.Flush())
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\u009b")
	require.NotContains(t, out.String(), "\u202e")
	require.Contains(t, out.String(), "[2Jgoneevil1m  end\n")
	require.Contains(t, out.String(), "क्\u200dष")
}
