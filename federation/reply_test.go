package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// logged are the activities of the node's log, newest last.
func (w *world) logged() (all []storage.LogEntry) {
	w.t.Helper()
	w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		all, err = tx.Logs().After(ctx, protocol.BoardID(w.base), 0, 100)
		return err
	})
	return all
}

// A reply is kept with what is shown of it, however much surrounds that; with
// a proof of its own it is kept as it is, and so must be small.
func TestAttack_PaddedReply(t *testing.T) {
	w := newWorld(t)
	padding := strings.Repeat("a", 240_000)
	pad := func(body []byte, bytes int) []byte {
		return []byte(strings.Replace(string(body), `{`, `{"padding":"`+padding[:bytes]+`",`, 1))
	}
	require.Equal(t, 202, w.deliver(alice,
		pad(w.note(80, `,"padding":"`+padding[:1000]+`","tag":[{"type":"Hashtag","name":"#offer"},{"type":"Hashtag","name":"#paper"}]`), 230_000)))
	settle(t, w.node)
	p := w.held("https://victim.example/n/80")
	require.Equal(t, "hi", p.Body)
	require.Less(t, len(p.Object), 600)
	entry := w.logged()[len(w.logged())-1]
	require.Less(t, len(entry.Activity), 1000)
	var kept struct {
		ID, Type, Actor string
		Object          struct {
			ID, AttributedTo, InReplyTo, Content, Published string
			Tag                                             []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal(entry.Activity, &kept))
	require.Equal(t, []string{"https://victim.example/a/80", "Create", alice, "https://victim.example/n/80", alice, w.post.URI, "<p>hi</p>",
		"2026-11-20T10:00:00Z"},
		[]string{kept.ID, kept.Type, kept.Actor, kept.Object.ID, kept.Object.AttributedTo, kept.Object.InReplyTo, kept.Object.Content, kept.Object.Published})
	require.Equal(t, "#offer #paper", kept.Object.Tag[0].Name+" "+kept.Object.Tag[1].Name)
	status, page := w.page("?after=0")
	require.Equal(t, 200, status)
	require.Len(t, page.OrderedItems, len(w.logged()))

	require.Equal(t, 202, w.deliver(alice, pad(fmt.Appendf(nil,
		`{"id":"https://victim.example/d/80","type":"Delete","actor":%q,"object":"https://victim.example/n/80"}`, alice), 230_000)))
	settle(t, w.node)
	require.Equal(t, protocol.Deleted, w.state("https://victim.example/n/80"))
	entry = w.logged()[len(w.logged())-1]
	require.Equal(t, storage.LogDelete, entry.Kind)
	require.Less(t, len(entry.Activity), 500)

	prove := func(body []byte) []byte {
		return must.Get(integrity.Sign(body, w.actors[alice].keys.Ed25519.Signer(), alice+"#ed25519-key", w.tick.now()))(t)
	}
	small := prove(pad(w.note(81, ""), 20_000))
	require.Equal(t, 202, w.deliver(alice, small))
	require.Equal(t, 413, w.deliver(alice, prove(pad(w.note(82, ""), 40_000))))
	require.Equal(t, 413, w.deliver(alice, prove(pad(w.note(82, `,"stoa:kind":"offer"`), 170_000))), "stoa's members without its context, and too large with it")
	settle(t, w.node)
	entry = w.logged()[len(w.logged())-1]
	require.Equal(t, string(small), string(entry.Activity), "its proof holds for these bytes")
	require.Nil(t, w.held("https://victim.example/n/82"))
}

// The answer to a Follow holds what makes it that Follow, and not what stood
// around it.
func TestAttack_PaddedFollow(t *testing.T) {
	s := newStranger(t)
	follow := "https://peer.example/f/9"
	require.Equal(t, 202, s.deliver(carol, fmt.Appendf(nil, `{"id":%q,"type":"Follow","actor":%q,"object":"https://u.example/ap/agents/none","padding":%q}`,
		follow, carol, strings.Repeat("a", 200_000))))
	settle(t, s.node)
	last := s.got[len(s.got)-1]
	require.Equal(t, "Reject", last.Type.String())
	require.JSONEq(t, fmt.Sprintf(`{"id":%q,"type":"Follow","actor":%q,"object":"https://u.example/ap/agents/none"}`, follow, carol), string(last.Object))
}
