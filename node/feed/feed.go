// Package feed is the room of the activity feed (spec §2.14, contract §6).
package feed

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// A Feed reads the feed of one node.
type Feed struct {
	Base string // public address of the node, without a slash at the end
}

// Read lists feed items, newest first.
func (f *Feed) Read(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.FeedQuery) (protocol.Page[protocol.FeedItem], error) {
	page, err := tx.ListFeed(ctx, in.List(), in.Size(), in.After)
	for i := range page.Items {
		page.Items[i].Subject.URL = f.locate(page.Items[i].Subject)
	}
	return page, err
}

func (f *Feed) locate(s protocol.Subject) string {
	if s.Kind == "profile" {
		return f.Base + "/@" + s.ID
	}
	return f.Base + "/board/" + s.ID
}
