package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

const (
	bidsHere  = "https://a.example/ap/board"
	bidAgent  = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	otherNode = "b.example"
)

func bidItem(id string, author protocol.Author, node *string) protocol.FeedItem {
	now := time.Now()
	return protocol.FeedItem{
		ID: protocol.NewID(protocol.FeedID, now), Type: protocol.FeedAttentionBid, At: now, Actor: author, Node: node,
		Subject: protocol.Subject{Kind: "bid", ID: id, URL: "https://a.example/@asha/board", Title: "Yarn"}, Summary: "A bid.",
	}
}

func bidsShown(t *testing.T, db *storage.DB) (ids []string) {
	t.Helper()
	read(t, db, func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.Feed().List(ctx, []protocol.FeedType{protocol.FeedAttentionBid}, false, 50, "")
		for _, i := range page.Items {
			ids = append(ids, i.Subject.ID)
		}
		return err
	})
	return ids
}

// Bids of a blocked author leave the feed, whatever name is blocked; those of others stay.
func TestRetractBids(t *testing.T) {
	t.Parallel()
	signed := protocol.Author{Name: "Ada", Verified: true, ERC8004: new(bidAgent), KeyID: new("key-1"), Handle: new("ada")}
	claims := protocol.Author{Name: "Ada", ERC8004: new(bidAgent), KeyID: new("key-1"), Handle: new("ada")}
	remote := protocol.Author{Name: "Bo", Node: new(otherNode), Actor: new("https://b.example/ap/agents/bo")}
	for _, test := range []struct {
		kind    protocol.BlockKind
		value   string
		author  protocol.Author
		node    *string
		retired bool
	}{
		{protocol.BlockAgent, bidAgent, signed, nil, true},
		{protocol.BlockKey, "key-1", signed, nil, true},
		{protocol.BlockHandle, "ada", signed, nil, true},
		{protocol.BlockHandle, "adam", signed, nil, false},
		{protocol.BlockAgent, bidAgent, claims, nil, false},
		{protocol.BlockHandle, "ada", claims, nil, false},
		{protocol.BlockActor, "https://b.example/ap/agents/bo", remote, new(otherNode), true},
		{protocol.BlockHost, "b.example", remote, new(otherNode), true},
		{protocol.BlockHost, "example", remote, new(otherNode), true},
		{protocol.BlockHost, "c.example", remote, new(otherNode), false},
	} {
		t.Run(fmt.Sprint(test.kind, " ", test.value, " ", test.author.Verified), func(t *testing.T) {
			each(t, func(t *testing.T, db *storage.DB) {
				one, other := protocol.NewID(protocol.BidID, time.Now()), protocol.NewID(protocol.BidID, time.Now())
				uri := ""
				if test.node != nil {
					uri = "https://b.example/ap/bids/" + one
				}
				write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					if err := tx.Bids().Publish(ctx, bidsHere, uri, bidItem(one, test.author, test.node)); err != nil {
						return err
					}
					return tx.Bids().Publish(ctx, bidsHere, "", bidItem(other, protocol.Author{Name: "Cy"}, nil))
				})
				require.ElementsMatch(t, []string{one, other}, bidsShown(t, db))
				for range 2 { // again: nothing more happens
					write(t, db, func(ctx context.Context, tx *storage.Tx) error {
						return tx.Bids().RetractOf(ctx, bidsHere, test.kind, test.value)
					})
				}
				want, entries := []string{other}, 2
				if !test.retired {
					want = []string{one, other}
				}
				if test.retired && test.node == nil {
					entries++
				}
				if test.node != nil {
					entries-- // bids of other nodes are not in this node's log
				}
				require.ElementsMatch(t, want, bidsShown(t, db))
				require.Eventually(t, func() bool {
					log := reads(t, db, func(ctx context.Context, tx *storage.Tx) ([]storage.LogEntry, error) {
						return tx.Logs().After(ctx, bidsHere, 0, 10)
					})
					return len(log) == entries
				}, time.Minute, 5*time.Millisecond)
				require.NoError(t, db.Check(t.Context()))
			})
		})
	}
}
