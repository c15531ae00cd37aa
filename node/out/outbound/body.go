package outbound

import (
	"errors"
	"io"
)

// ErrBodyTooLarge means that an answer is longer than Options.MaxBody. Reading the body returns
// it, the first Read already when Content-Length announces it.
var ErrBodyTooLarge = errors.New("outbound: response body over the limit")

// body returns at most left bytes and fails when there are more, so that a truncated document is
// never taken for a whole one.
type body struct {
	rc   io.ReadCloser
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrBodyTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more shows that the body is too long
	}
	n, err := b.rc.Read(p)
	if int64(n) > b.left {
		n, b.left = int(b.left), -1
		return n, ErrBodyTooLarge
	}
	b.left -= int64(n)
	return n, err
}

func (b *body) Close() error { return b.rc.Close() }
