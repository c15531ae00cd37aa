package erc8004

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long an endpoint that limits its callers is left alone.
const (
	shortPause = time.Second // when it does not say
	maxPause   = 2 * time.Minute
)

// A pauseError is an answer by which an endpoint limits its callers: 429, or 503 with Retry-After (RFC 9110 §10.2.3).
type pauseError struct {
	status int
	wait   time.Duration
}

func (e *pauseError) Error() string { return fmt.Sprintf("status %d: a pause of %s", e.status, e.wait) }

// pauseIn returns the pause that an answer asks for; nil for none.
func pauseIn(res *http.Response, now time.Time) error {
	after := res.Header.Get("Retry-After")
	if res.StatusCode != http.StatusTooManyRequests && (res.StatusCode != http.StatusServiceUnavailable || after == "") {
		return nil
	}
	wait := shortPause
	if seconds, err := strconv.ParseUint(after, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		wait = at.Sub(now)
	}
	return &pauseError{res.StatusCode, min(maxPause, max(shortPause, wait))}
}

// pauseOf returns the pause that an error asks for, 0 for none.
func pauseOf(err error) time.Duration {
	if p, ok := errors.AsType[*pauseError](err); ok {
		return p.wait
	}
	if limited(err) {
		return shortPause
	}
	return 0
}

// limited recognises a limit of calls in JSON-RPC: -32005 (EIP-1474), and 429 as Alchemy sends it. Providers use -32005 for too many
// blocks or events in one call too, which a pause does not mend.
func limited(err error) bool {
	switch errorCode(err) {
	case 429:
		return true
	case -32005:
		return !mentions(err, "range", "block", "result", "query", "log")
	}
	return false
}

// mentions reports whether the text of an error has one of the words.
func mentions(err error, words ...string) bool {
	s := strings.ToLower(err.Error())
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// refusedRange recognises the many ways in which providers say that an answer is too large, and our own. "Deadline exceeded" is none of them.
func refusedRange(err error) bool {
	return pauseOf(err) == 0 && !errors.Is(err, context.DeadlineExceeded) && mentions(err, "range", "limit", "too large", "too many", "exceed")
}
