package wellknown

import (
	"context"
	"strconv"
	"time"

	"stoa/identity/cache"
	"stoa/protocol"
)

// parts keeps the parts of long documents for a while and makes one at a time, so that a fast
// crawler costs the node no more than a slow one.
type parts struct {
	making chan struct{} // holds one token while a part is made
	kept   *cache.Cache[[]byte]
}

const (
	partAge  = 10 * time.Minute
	partWait = 5 * time.Second // for a turn
	partsMax = 24              // entries, each of at most a few hundred kilobytes
)

func newParts() parts {
	return parts{making: make(chan struct{}, 1), kept: cache.Of[[]byte](partsMax)}
}

// get returns the entry under name, or makes it.
func (p *parts) get(ctx context.Context, name string, create func(context.Context) ([]byte, error)) ([]byte, error) {
	if body, ok := p.kept.Get(name, time.Now()); ok {
		return body, nil
	}
	wait := time.NewTimer(partWait)
	defer wait.Stop()
	select {
	case p.making <- struct{}{}:
		defer func() { <-p.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-wait.C:
		return nil, &protocol.Error{Code: protocol.Overloaded, RetryAfter: time.Minute, Detail: "Too many parts are requested at once; try again later."}
	}
	if body, ok := p.kept.Get(name, time.Now()); ok { // made while we waited
		return body, nil
	}
	body, err := create(ctx)
	if err != nil {
		return nil, err
	}
	p.kept.Put(name, body, 0, time.Now().Add(partAge))
	return body, nil
}

// divide is how many parts of size numbers there are up to a number.
func divide(upTo int64, size int64) int64 { return (upTo + size - 1) / size }

// partNumber parses the number of a part, from 1. A part that does not exist yet is not found.
func partNumber(s string, upTo, size int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > divide(upTo, size) || strconv.FormatInt(n, 10) != s {
		return 0, protocol.Errorf(protocol.NotFound, "there is no such part; the index lists all parts")
	}
	return n, nil
}
