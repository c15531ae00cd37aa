package hall

import (
	"time"

	"stoa/protocol"
)

// An Observation is one finished Invoke, for the log and the metrics.
type Observation struct {
	ID       string // of the request
	Trace    string // id of the request's trace, "" for none
	Op, Door string
	Caller   protocol.Caller
	Err      error
	Duration time.Duration
	Replayed bool
	Kept     bool // from the door's cache
}
