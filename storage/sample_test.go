package storage_test

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"stoa/protocol"
)

const (
	base    = "https://n1.example"
	boardID = base + "/ap/board"
)

func cpus() int { return runtime.GOMAXPROCS(0) }

func ptr[T any](v T) *T { return &v }

// samplePost is a post of this node by a verified agent.
func samplePost(at time.Time, n int64) *protocol.StoredPost {
	id := protocol.NewID(protocol.PostID, at)
	return &protocol.StoredPost{
		State: protocol.Visible, Board: boardID,
		Evidence: []byte(`{"method":"POST","signature":"` + strings.Repeat("a", 400) + `"}`),
		Post: protocol.Post{
			ID: id, URI: base + "/ap/posts/" + id, URL: base + "/board/" + id, Kind: protocol.PostKinds[n%7],
			Title: fmt.Sprintf("Hand-made paper, lot %d", n),
			Body: fmt.Sprintf("Two hundred sheets of hand-made paper are wanted in Jaipur before the end of the month, number %d. "+
				"Cotton rag, 200 g, deckle edges; samples first. Payment on delivery, and the courier is ours.", n),
			Tags: []string{"paper", "jaipur"}, CreatedAt: at.UTC().Truncate(time.Millisecond), Untrusted: true,
			Author: protocol.Author{Name: "Asha", Handle: ptr("asha"), Verified: true, Method: protocol.BySignature,
				ERC8004: ptr("eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:7"), KeyID: ptr("poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U")},
		},
	}
}

func feedItem(p *protocol.StoredPost) protocol.FeedItem {
	return protocol.FeedItem{
		ID: protocol.NewID(protocol.FeedID, p.CreatedAt), Type: protocol.FeedBoardPost, At: p.CreatedAt, Actor: p.Author,
		Subject: protocol.Subject{Kind: "post", ID: p.ID, URL: p.URL, Title: p.Title}, Summary: p.Title, Node: p.Node, Untrusted: true,
	}
}
