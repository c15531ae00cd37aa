package webhook

import (
	"errors"
	"time"

	"stoa/protocol/netx"
)

const (
	firstWait   = 5 * time.Second
	longestWait = time.Hour
)

// After returns what follows an attempt that failed, the tries-th of its document (contract §4): the
// failure, and when to make the next attempt. at is zero when there is none: the receiver is gone or
// must not be reached, or the next would be after until. The pause is 5 s, doubling up to an hour, with
// a quarter of jitter so that documents that failed together are not sent again together.
func After(sent error, tries int, now, until time.Time) (f *Failure, at time.Time) {
	f, ok := errors.AsType[*Failure](sent)
	if !ok {
		f = &Failure{Kind: ErrRetry, Text: "this node could not send it"}
	}
	if f.Kind != ErrRetry {
		return f, time.Time{}
	}
	at = now.Add(max(netx.Jitter(netx.Backoff(firstWait, longestWait, tries)), f.RetryAfter))
	if at.After(until) {
		return f, time.Time{}
	}
	return f, at
}
