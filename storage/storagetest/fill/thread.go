package fill

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// What belongs to one owner, or to the operators, is made thread by thread: the
// first profile has every other thread, so that one inbox is as large as the node
// allows, and what happens to posts is spread over the threads.

// maxBlocks bounds the blocks of the node; more than protocol.MaxBlocks are refused.
const maxBlocks = protocol.MaxBlocks / 2

// atThread is when thread n was begun: spread over the same year as the posts.
func (w *writer) atThread(n int) time.Time {
	step := max(time.Millisecond, 365*24*time.Hour/time.Duration(max(1, w.Threads)))
	return w.until.Add(-time.Duration(w.Threads-1-n) * step).Truncate(time.Millisecond)
}

func (w *writer) threadID(n int) string {
	return protocol.RemoteID(protocol.ThreadID, w.atThread(n), fmt.Sprintf("fill %d thread %d", w.Seed, n))
}

// ReadToken opens the thread of a number.
func ReadToken(n int) string { return fmt.Sprintf("stoa_read_fill-%d", n) }

// thread writes thread n, and what operators and readers are told meanwhile.
func (w *writer) thread(ctx context.Context, tx *storage.Tx, n int) error {
	r := w.of(3, n)
	t := w.threadOf(r, n)
	if err := tx.Threads().Insert(ctx, t); err != nil {
		return err
	}
	at := w.atThread(n)
	for k := range 1 + r.IntN(4) {
		side, by := protocol.WriterSide, t.Author
		if k%2 == 1 {
			side, by = protocol.AgentSide, w.authorOf(t.Handle)
		}
		at = at.Add(time.Minute)
		m := protocol.Message{ID: protocol.RemoteID(protocol.MessageID, at, fmt.Sprintf("fill %d message %d of %d", w.Seed, k, n)), From: side, Author: by,
			Text: w.text(r, 5, 40), CreatedAt: at, Untrusted: true}
		if err := tx.Threads().AppendMessage(ctx, t, m); err != nil {
			return err
		}
		if err := w.addNews(ctx, tx, t, m); err != nil {
			return err
		}
	}
	if err := tx.Threads().Save(ctx, t); err != nil {
		return err
	}
	if n%40 < 2 { // of the busy owner and of others
		b := &storage.ContactBlock{ID: protocol.NewID(protocol.BlockID, at), Handle: t.Handle, Writer: t.Writer, Names: []string{t.Writer},
			Author: t.Author, ThreadID: t.ID}
		if err := tx.ContactBlocks().Insert(ctx, b); err != nil {
			return err
		}
	}
	if err := w.newsOfReplies(ctx, tx, n); err != nil {
		return err
	}
	return w.operators(ctx, tx, n, r)
}

// threadOf is thread n before its first message.
func (w *writer) threadOf(r *rand.Rand, n int) *storage.StoredThread {
	to := 0
	if n%2 == 1 {
		to = r.IntN(w.Profiles)
	}
	t := &storage.StoredThread{ID: w.threadID(n), Handle: Handle(to), Kind: protocol.ContactKind(protocol.ContactKinds[n%len(protocol.ContactKinds)]),
		State:  protocol.ThreadOpen,
		Writer: fmt.Sprint("net:", n), TokenHash: protocol.SecretHash(ReadToken(n)), Author: protocol.Author{Name: "Meera", Method: protocol.ByProof}}
	switch {
	case n%3 == 0: // one of few who write often
		by := r.IntN(min(w.Profiles, 50))
		t.Author, t.Writer = w.author(by, n), "handle:"+Handle(by)
	case n%3 == 1:
		hash := sha256.Sum256([]byte(ReadToken(n)))
		t.Visitor = string(hash[:])
	}
	switch n % 10 {
	case 0, 1, 2, 3, 4, 5: // most are over
		closed := w.atThread(n).Add(30 * 24 * time.Hour)
		t.State, t.ClosedAt, t.ClosedBy = protocol.ThreadClosed, &closed, "silence"
	case 6, 7:
		t.State = protocol.ThreadAnswered
	}
	if n%4 < 2 {
		t.Callback = "https://hooks.example/stoa"
	}
	return t
}

func (w *writer) authorOf(handle string) protocol.Author {
	actor := protocol.ActorID(w.Base, handle)
	return protocol.Author{Name: handle, Handle: &handle, Actor: &actor, Verified: true, Method: protocol.BySession}
}

// addNews adds the news of a message, and for an answer a finished delivery.
func (w *writer) addNews(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, m protocol.Message) error {
	ref := storage.MessageRef(t.ID, t.Messages)
	if m.From == protocol.WriterSide {
		return tx.News().Append(ctx, storage.NewsInbox, ref, "handle:"+t.Handle)
	}
	readers := append([]string{storage.ThreadReader(t.ID)}, t.Author.Names()...)
	if t.Visitor != "" {
		readers = append(readers, storage.VisitorReader(t.Visitor))
	}
	if err := tx.News().Append(ctx, storage.NewsAnswer, ref, readers...); err != nil || t.Callback == "" {
		return err
	}
	state := protocol.CallbackDone
	if m.CreatedAt.Unix()%8 == 0 {
		state = protocol.CallbackFailed
	}
	return tx.Callbacks().Insert(ctx, &storage.StoredCallback{ID: m.ID, Handle: t.Handle, ThreadID: t.ID, N: t.Messages, URL: t.Callback, State: state,
		Attempts: 1, Tries: 1, Status: 200, NextAt: m.CreatedAt, Until: m.CreatedAt.Add(24 * time.Hour)})
}

// newsOfReplies tells authors of the replies that fall to thread n.
func (w *writer) newsOfReplies(ctx context.Context, tx *storage.Tx, n int) error {
	for i := w.Posts * n / w.Threads; i < w.Posts*(n+1)/w.Threads; i++ {
		parent := int(w.plan.parent[i])
		if parent < 0 || w.plan.author[parent] < 0 || w.plan.author[parent] == w.plan.author[i] {
			continue
		}
		if err := tx.News().Append(ctx, storage.NewsReply, w.postID(i), w.author(int(w.plan.author[parent]), parent).Names()...); err != nil {
			return err
		}
	}
	return nil
}

// operators writes what falls to thread n of their queue, notes, blocks and logs.
func (w *writer) operators(ctx context.Context, tx *storage.Tx, n int, r *rand.Rand) error {
	post := ""
	if w.Posts > 0 {
		post = w.postID(w.Posts * n / w.Threads)
	}
	if err := tx.Audit(ctx, "https://n2.example/ap/board", "kept-out", "n2.example", "the body is not what was signed"); err != nil {
		return err
	}
	if err := tx.Audit(ctx, "acc_fill", "note", post, ""); err != nil {
		return err
	}
	if n%5 == 0 {
		if err := tx.Moderation().Log(ctx, protocol.ActionDismiss, "post", post, "fine"); err != nil {
			return err
		}
		note := protocol.ModerationNote{ID: protocol.NewID(protocol.NoteID, w.atThread(n)), Subject: post, Text: "Looked at.", Actor: "acc_fill", At: w.atThread(n)}
		if err := tx.Moderation().InsertNote(ctx, note); err != nil {
			return err
		}
	}
	if n%5 == 1 && n/5 < maxBlocks {
		b := protocol.Block{ID: protocol.NewID(protocol.BlockID, w.atThread(n)), Kind: protocol.BlockNetwork, Value: fmt.Sprint("fill-", n), Reason: "spam",
			Actor: "acc_fill", CreatedAt: w.atThread(n)}
		if n%50 == 1 {
			b.Kind, b.Value = protocol.BlockHost, fmt.Sprintf("h%d.example", n)
		}
		if err := tx.Blocks().Put(ctx, b); err != nil {
			return err
		}
	}
	if n%10 != 2 || post == "" {
		return nil
	}
	for k := range 1 + r.IntN(4) {
		if _, _, err := tx.Moderation().InsertReport(ctx, post, fmt.Sprint("fill ", k), "spam"); err != nil {
			return err
		}
	}
	if n%30 == 2 {
		return tx.Posts().SetState(ctx, post, protocol.Hidden, "operator: spam")
	}
	return nil
}
