package rate_test

import (
	"fmt"
	"time"

	"stoa/protocol/rate"
)

// Two at once, then one a second: the third has to wait.
func ExampleLimit_Take() {
	limit, now := rate.PerSecond(1, 2), time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC).UnixNano()
	var free int64
	for range 3 {
		next, wait := limit.Take(free, now, 1)
		if wait <= 0 {
			free = next
		}
		fmt.Println(max(0, wait))
	}
	// Output:
	// 0s
	// 0s
	// 1s
}
