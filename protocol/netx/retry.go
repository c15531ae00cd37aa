package netx

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// RetryAfter reads the field of that name, seconds or a date (RFC 9110 §10.2.3):
// from 0, which is also what anything else means, to most.
func RetryAfter(value string, now time.Time, most time.Duration) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(value); err == nil {
		d = time.Duration(min(max(n, 0), int(most/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), most)
}

// Seconds is a wait as that field gives it: rounded up, and at least 1.
func Seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// Backoff is how long to wait after the n-th failure, from 1: first, doubled with
// each further one, up to most.
func Backoff(first, most time.Duration, n int) time.Duration {
	d := first
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	return min(d, most)
}

// Jitter returns d, more or less by up to a quarter, so that what failed together
// does not come back together.
func Jitter(d time.Duration) time.Duration { return Spread(d, 0.25) }

// Spread returns d, more or less by up to that share of it.
func Spread(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}
