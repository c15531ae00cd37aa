package protocol

import (
	"context"
	"sync"
)

// An Event is one event of a stream.
type Event struct {
	ID   string // where a reader that reconnects continues
	Type string
	Data []byte // JSON, one line
}

// A Batch is events that are sent together. Many streams share one: it does not change, and
// several goroutines may read it.
type Batch struct {
	Events []Event

	once sync.Once
	text []byte
}

// Text returns the batch as a door renders it; it is rendered at the first call. A door passes the
// same function each time, and does not modify the result.
func (b *Batch) Text(render func([]Event) []byte) []byte {
	b.once.Do(func() { b.text = render(b.Events) })
	return b.text
}

// A Stream is the result of an operation that continues after its transaction. The door that asked
// for it reads it from one goroutine and closes it.
type Stream interface {
	// Next waits for the next batch. A batch without events means that nothing happened for a
	// while, so that the door can tell its client that the stream is alive. Next returns io.EOF
	// when the stream has ended normally, the error of ctx when that ends first, and *Error when
	// the reader is too slow or the node has failed. After the end of ctx it may be called again
	// without losing events.
	Next(ctx context.Context) (*Batch, error)
	// Place returns the id to continue from: that of the last event that Next has returned or
	// skipped; "" before the first.
	Place() string
	// Close ends the stream. It may be called twice.
	Close()
}
