package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// newTable returns a writer of cells separated by tabs. They may contain what others wrote, so
// control sequences are removed.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(plain{w}, 0, 0, 2, ' ', 0) }

// plain removes control characters except line feeds, and characters that change the direction of
// text.
type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	s := strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r < ' ', r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, string(b))
	if _, err := io.WriteString(p.w, s); err != nil {
		return 0, err
	}
	return len(b), nil
}

// plural returns a number of things with a regular plural.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
