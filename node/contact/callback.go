package contact

import "context"

// A Sender delivers one signed document (node/webhook).
type Sender interface {
	Send(ctx context.Context, address, id string, body []byte) error
}
