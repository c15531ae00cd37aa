package hall

import (
	"context"
	"time"

	"stoa/protocol"
)

// An Observation is one finished Invoke, for the log and the metrics.
type Observation struct {
	ID       string // of the request
	Op, Door string
	Caller   protocol.Caller
	Err      error
	Duration time.Duration
	Replayed bool
	Kept     bool // from the door's cache
}

type requestIDKey struct{}

// WithRequestID returns a context in which the log lines of [Table.Invoke] have the id of a request.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
