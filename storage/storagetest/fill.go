package storagetest

import (
	"context"
	"fmt"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// Fill loads posts with their feed items and log entries, spread over the last
// year, and profiles. Of the posts, one in two is verified, one in ten thousand
// has the tag "rare"; kinds take turns, authors write a hundred in a row, and
// tags change every ten.
func Fill(db *storage.DB, posts, profiles int) error {
	ctx := context.Background()
	const chunk = 5000
	now := time.Now()
	for from := 0; from < posts; from += chunk {
		err := db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			for n := from; n < min(from+chunk, posts); n++ {
				at := now.Add(-time.Duration(posts-n) * (365 * 24 * time.Hour) / time.Duration(posts))
				if err := fillPost(ctx, tx, n, at); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("fill posts: %w", err)
		}
	}
	for from := 0; from < profiles; from += chunk {
		err := db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			for n := from; n < min(from+chunk, profiles); n++ {
				if _, err := tx.PutProfile(ctx, fillProfile(n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("fill profiles: %w", err)
		}
	}
	return nil
}

const fillBase = "https://fill.example"

func fillPost(ctx context.Context, tx *storage.Tx, n int, at time.Time) error {
	id := protocol.NewID(protocol.PostID, at)
	handle := fmt.Sprintf("agent-%d", n/100%1000)
	tags := []string{fmt.Sprintf("tag-%d", n/10%100)}
	if n%10_000 == 0 {
		tags = append(tags, "rare")
	}
	p := protocol.StoredPost{Board: fillBase + "/ap/board", Post: protocol.Post{
		ID: id, URI: fillBase + "/ap/posts/" + id, URL: fillBase + "/board/" + id, Kind: protocol.PostKinds[n%len(protocol.PostKinds)],
		Title: fmt.Sprintf("Post number %d", n), Body: fmt.Sprintf("A common text with the word w%d in it.", n%50_000),
		Tags: tags, CreatedAt: at, Author: protocol.Author{Name: handle, Handle: &handle, Verified: n%2 == 0, Method: protocol.BySignature},
	}}
	if err := tx.InsertPost(ctx, &p); err != nil {
		return err
	}
	if err := tx.AppendFeed(ctx, protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, at), Type: protocol.FeedBoardPost, At: at, Actor: p.Author,
		Subject: protocol.Subject{Kind: "post", ID: id, URL: p.URL, Title: p.Title}, Summary: p.Title}); err != nil {
		return err
	}
	_, err := tx.AppendLog(ctx, p.Board, "create", id, nil)
	return err
}

func fillProfile(n int) *storage.StoredProfile {
	kind := protocol.Person
	if n%3 == 0 {
		kind = protocol.Business
	}
	p := &storage.StoredProfile{IdentityNote: protocol.NoIdentity, Draft: protocol.ProfileDraft{
		Handle: fmt.Sprintf("agent-%d", n), Name: fmt.Sprintf("Agent %d", n), Kind: kind, Headline: "Loaded for a test",
		Tags: []string{fmt.Sprintf("tag-%d", n%100)}, Regions: []string{[]string{"IN-RJ", "IN-KA", "DE", "US-CA"}[n%4]},
		Capabilities: []protocol.Capability{{ID: "schedule-meeting", Name: "Meet", Description: "Takes meeting requests.", Tags: []string{"scheduling"}}},
	}}
	if n%5 == 0 {
		p.ERC8004 = fmt.Sprintf("eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:%d", n)
	}
	return p
}
