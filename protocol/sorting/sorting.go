// Package sorting sorts lists of structs with little code: slices.SortFunc is in the program once for each type, with 20 kB.
package sorting

import "sort"

// Stable sorts a list. What compares as equal keeps its order.
func Stable[S ~[]E, E any](list S, compare func(a, b E) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
