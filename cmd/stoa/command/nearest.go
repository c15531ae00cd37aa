package command

import (
	"fmt"
	"strings"
)

// DidYouMean returns a suggestion for an unknown word: the most similar known one, or "".
func DidYouMean(word string, known []string) string {
	best, least := "", max(2, len(word)/4)+1
	for _, k := range known {
		d := distance(word, k)
		if strings.HasPrefix(k, word) && word != "" {
			d = min(d, 1)
		}
		if d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance returns how many characters to insert, delete, change or swap with their neighbour to
// turn a into b.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			next[j+1] = min(row[j+1], next[j]) + 1
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(next[j+1], change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
