package protocol

import "context"

// An Event is one thing that a stream tells.
type Event struct {
	ID   string // where a reader goes on that comes back
	Type string
	Data []byte // JSON, one line
}

// A Stream is the result of an operation that goes on after its transaction.
// The door that asked for it reads it from one goroutine and closes it.
type Stream interface {
	// Next waits for what comes next and returns one event or more. It returns
	// io.EOF when the stream has ended in order, the error of ctx when that ends
	// first, and *Error when the reader is too slow or the node is at fault.
	// After an end of ctx it may be called again, and has lost nothing.
	Next(ctx context.Context) ([]Event, error)
	// Place is the id to go on from: that of the last event that Next has given
	// or passed over; "" before the first.
	Place() string
	// Close ends the stream. It may be called twice.
	Close()
}
