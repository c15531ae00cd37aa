package storage

import (
	"context"
	"slices"
	"time"

	"stoa/protocol"
)

// What the export of a profile reads and its import writes, in addition to the
// rooms: rows are stored with their original times.

// An ArchivedPost is a post with the reason of its state.
type ArchivedPost struct {
	protocol.StoredPost
	Reason    string
	ParentURI string // ActivityPub id of the post that it answers, "" for none
	seq       int64
}

// archiveChunk is how many posts are read in one query.
const archiveChunk = 200

// EachOwn calls fn for every post of a profile, oldest first, in any state:
// those made here, and those that came with an archive of the profile.
func (ps Posts) EachOwn(ctx context.Context, handle string, fn func(*ArchivedPost) error) error {
	seqs, err := list[int64](ctx, ps.tx, `SELECT seq FROM post WHERE author_handle = ? AND author_local AND state = 'visible'
		UNION ALL SELECT seq FROM post WHERE author_handle = ? AND author_local AND state <> 'visible'
		UNION ALL SELECT seq FROM archive_post WHERE handle = ?`, handle, handle, handle)
	if err != nil {
		return err
	}
	slices.Sort(seqs)
	for chunk := range slices.Chunk(slices.Compact(seqs), archiveChunk) {
		posts, err := ps.archived(ctx, chunk)
		if err != nil {
			return err
		}
		for i := range posts {
			if err := fn(&posts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ps Posts) archived(ctx context.Context, seqs []int64) ([]ArchivedPost, error) {
	marks := make([]byte, 0, 3*len(seqs))
	args := make([]any, len(seqs))
	for i, seq := range seqs {
		marks, args[i] = append(marks, ", ?"...), seq
	}
	rows, err := ps.tx.query(ctx, `SELECT `+storedColumns+`, reason FROM post WHERE seq IN (`+string(marks[2:])+`) ORDER BY seq`, args...)
	posts, err := collect(rows, err, func(s scanner) (p ArchivedPost, err error) {
		p.seq, err = scanStored(s, &p.StoredPost, &p.Reason)
		return p, err
	})
	if err != nil {
		return nil, err
	}
	for i := range posts {
		p := &posts[i]
		if err := ps.tx.whole(ctx, p.seq, &p.StoredPost); err != nil {
			return nil, err
		}
		p.Object = nil // the object of another node is not exported
		p.ParentURI = p.ReplyTo
		if p.ParentURI == "" && p.InReplyTo != nil {
			parent, err := ps.ByID(ctx, *p.InReplyTo)
			if err == ErrNotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			p.ParentURI = parent.URI
		}
	}
	return posts, nil
}

// Import stores a post of another node that belongs to a profile of this one.
// ErrExists when its uri is already stored.
func (ps Posts) Import(ctx context.Context, handle string, p *ArchivedPost) error {
	if err := ps.Insert(ctx, &p.StoredPost); err != nil {
		return err
	}
	_, seq, err := ps.byID(ctx, p.ID)
	if err != nil {
		return err
	}
	if p.Reason != "" {
		if _, err := ps.tx.write(ctx, `UPDATE post SET reason = ? WHERE seq = ?`, p.Reason, seq); err != nil {
			return err
		}
	}
	return ps.tx.exec(ctx, `INSERT INTO archive_post (handle, seq) VALUES (?, ?) ON CONFLICT DO NOTHING`, handle, seq)
}

// Import stores a thread unchanged, with its messages, numbered from 1.
// ErrExists when the id is taken.
func (ts Threads) Import(ctx context.Context, t *StoredThread) error {
	stored := newThread{*t, begunBy(t.Writer, t.Author)}
	stored.Visitor, stored.WriterHandle, stored.Seen = "", "", t.Messages-t.Unread
	return newThreadTable.create(ctx, ts.tx, &stored)
}

// ImportMessage stores a message of a thread under its number.
func (ts Threads) ImportMessage(ctx context.Context, threadID string, m NumberedMessage) error {
	if err := ts.insertMessage(ctx, threadID, m.N, m.Message); err != nil {
		return err
	}
	if m.ClientID == "" {
		return nil
	}
	return ts.SetClientID(ctx, threadID, m.N, m.ClientID)
}

// Import stores a delivery unchanged. ErrExists when its id is taken.
func (cs Callbacks) Import(ctx context.Context, c *StoredCallback) error {
	return callbackTable.create(ctx, cs.tx, c)
}

// Names are the names by which a blocked writer is recognized.
func (bs ContactBlocks) Names(ctx context.Context, id string) ([]string, error) {
	return list[string](ctx, bs.tx, `SELECT name FROM contact_block_name WHERE block_id = ? ORDER BY name`, id)
}

// SetTime sets the original time of a block.
func (bs ContactBlocks) SetTime(ctx context.Context, id string, at time.Time) error {
	return bs.tx.exec(ctx, `UPDATE contact_block SET at = ? WHERE id = ?`, millis(at), id)
}

// PutAt is Put for a profile whose owner wrote it at another time.
func (ps Profiles) PutAt(ctx context.Context, p *StoredProfile, written time.Time) (created bool, err error) {
	return ps.put(ctx, p, written)
}

// PutAt is Put for a record that its owner wrote at another time.
func (ms Merchants) PutAt(ctx context.Context, handle string, draft protocol.MerchantDraft, written time.Time) error {
	_, _, err := ms.put(ctx, handle, draft, written)
	return err
}

// SkipNews marks the news of a business as told: the feed will neither announce that it
// joined, nor the items that it has now.
func (ms Merchants) SkipNews(ctx context.Context, handle string) error {
	if _, err := ms.tx.writeAside(ctx, `UPDATE profile SET joined_at = ? WHERE handle = ? AND joined_at = 0`, millis(ms.tx.Now), handle); err != nil {
		return err
	}
	return ms.tx.exec(ctx, `UPDATE merchant SET
		news = (SELECT COALESCE(max(pos), 0) / 2 FROM item i WHERE i.seq = merchant.seq AND i.since <= merchant.catalog)
		WHERE seq = (SELECT seq FROM profile WHERE handle = ?)`, handle)
}

// LinkArchived counts a stored post of another node as one of a profile.
func (ps Posts) LinkArchived(ctx context.Context, handle string, p *protocol.StoredPost) error {
	_, seq, err := ps.byID(ctx, p.ID)
	if err != nil {
		return err
	}
	return ps.tx.exec(ctx, `INSERT INTO archive_post (handle, seq) VALUES (?, ?) ON CONFLICT DO NOTHING`, handle, seq)
}

// Handle is the handle of the one profile that a token is for; "" when there is
// no such token, or when it is for a whole account.
func (ts Tokens) Handle(ctx context.Context, id string) (string, error) {
	return orZero(find[string](ctx, ts.tx, `SELECT handle FROM api_token WHERE id = ?`, id))
}

// HasAuthor reports whether posts exist that a profile of that handle wrote on
// this node.
func (ps Posts) HasAuthor(ctx context.Context, handle string) (bool, error) {
	var n int
	err := ps.tx.row(ctx, `SELECT (SELECT count(*) FROM (SELECT 1 FROM post WHERE author_handle = ? AND author_local AND state = 'visible' LIMIT 1) AS v)
		+ (SELECT count(*) FROM (SELECT 1 FROM post WHERE author_handle = ? AND author_local AND state <> 'visible' LIMIT 1) AS w)`, handle, handle).Scan(&n)
	return n > 0, err
}
