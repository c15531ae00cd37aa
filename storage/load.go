package storage

import (
	"context"

	"stoa/protocol"
)

// Load stores a visible post of this node unchanged and without lookups, with its
// thread, replies and resolution, which must be true when the transaction ends. It
// is for test databases; [Posts.Insert] takes three times as long.
func (ps Posts) Load(p *protocol.StoredPost) error {
	if !ps.tx.writes() {
		return ErrReadOnly
	}
	seq, err := seqOf(p.ID)
	if err != nil {
		return err
	}
	p.State = protocol.Visible
	return ps.hold(p, seq)
}

// CountThreads sets the number of visible posts below each root, which Load
// does not count.
func (ps Posts) CountThreads(ctx context.Context) error {
	return ps.tx.exec(ctx, `UPDATE post SET thread_count = t.n FROM
		(SELECT root, count(*) AS n FROM post WHERE root IS NOT NULL AND state = 'visible' GROUP BY root) t WHERE post.id = t.root`)
}
