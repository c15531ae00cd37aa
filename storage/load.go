package storage

import (
	"context"

	"stoa/protocol"
)

// LoadPost stores a visible post of this node unchanged and without lookups, with
// its thread, replies and resolution, which must be true when the transaction ends.
// It is for test databases; [Tx.InsertPost] takes three times as long.
func (tx *Tx) LoadPost(p *protocol.StoredPost) error {
	if tx.batch == nil {
		return ErrReadOnly
	}
	seq, err := seqOf(p.ID)
	if err != nil {
		return err
	}
	p.State = protocol.Visible
	return tx.holdPost(p, seq)
}

// CountThreads sets the number of visible posts below each root, which LoadPost
// does not count.
func (tx *Tx) CountThreads(ctx context.Context) error {
	_, err := tx.write(ctx, `UPDATE post SET thread_count = t.n FROM
		(SELECT root, count(*) AS n FROM post WHERE root IS NOT NULL AND state = 'visible' GROUP BY root) t WHERE post.id = t.root`)
	return err
}
