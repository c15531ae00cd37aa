package protocol

import (
	"context"
	"sync"
)

// An Event is one thing that a stream tells.
type Event struct {
	ID   string // where a reader goes on that comes back
	Type string
	Data []byte // JSON, one line
}

// A Batch is events that go out together. Many streams are given the same one:
// it is not changed, and may be read by several goroutines.
type Batch struct {
	Events []Event

	once sync.Once
	text []byte
}

// Text is the batch as a door renders it, made at the first call. A door gives
// the same function each time, and does not change the result.
func (b *Batch) Text(render func([]Event) []byte) []byte {
	b.once.Do(func() { b.text = render(b.Events) })
	return b.text
}

// A Stream is the result of an operation that goes on after its transaction.
// The door that asked for it reads it from one goroutine and closes it.
type Stream interface {
	// Next waits for what comes next. A batch without events says that nothing
	// came for a while, so that the door can tell its client that the stream is
	// alive. Next returns io.EOF when the stream has ended in order, the error of
	// ctx when that ends first, and *Error when the reader is too slow or the node
	// is at fault. After an end of ctx it may be called again, and has lost nothing.
	Next(ctx context.Context) (*Batch, error)
	// Place is the id to go on from: that of the last event that Next has given
	// or passed over; "" before the first.
	Place() string
	// Close ends the stream. It may be called twice.
	Close()
}
