// Package feed is the activity feed (spec §2.14, contract §6): its pages, and streams of it as it
// happens.
package feed

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// A Feed reads the feed of one node.
type Feed struct {
	DB    *storage.DB
	Base  string // public address of the node, without a slash at the end
	Hub   *Hub
	Pulse *Pulse
}

// Read lists feed items, newest first.
func (f *Feed) Read(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.FeedQuery) (protocol.Page[protocol.FeedItem], error) {
	page, err := tx.Feed().List(ctx, in.List(), in.Local, in.Size(), in.After)
	for i := range page.Items {
		locate(f.Base, &page.Items[i])
	}
	return page, err
}

// Stream opens a stream that starts after a given item, or with the next one.
func (f *Feed) Stream(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.FeedStream) (protocol.Stream, error) {
	at, place, err := tx.Feed().Place(ctx, in.After)
	if err != nil {
		return nil, err
	}
	r, err := f.Hub.open(c, at, place, in)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// locate sets the page of an item's subject. A subject without a page is on the page of its
// author, unless the item has an address already.
func locate(base string, i *protocol.FeedItem) {
	switch s := &i.Subject; {
	case s.Kind == "post":
		s.URL = base + "/board/" + s.ID
	case i.Node != nil && s.URL != "": // on the node where it happened
	case s.Kind == "profile":
		s.URL = base + "/@" + s.ID
	case s.Kind == "item" && i.Actor.Handle != nil && i.Actor.Node == nil:
		s.URL = base + "/@" + *i.Actor.Handle + "#" + s.ID
	case s.URL == "" && i.Actor.Handle != nil && i.Actor.Node == nil:
		s.URL = base + "/@" + *i.Actor.Handle
	case s.URL == "":
		s.URL = base + "/feed"
	}
}
