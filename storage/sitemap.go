package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

// A Listed is a page of this node in a site map: the handle of a profile or the id
// of a post, and when the page last changed.
type Listed struct {
	Name    string
	Changed time.Time
}

// Site reads the pages of the site map, and counts what is stored.
type Site struct{ tx *Tx }

func (tx *Tx) Site() Site { return Site{tx} }

// Size returns the highest number of the profiles of this node and of the entries
// of its board's log. Both only grow, and numbers never change, so a site map can
// be divided by number.
func (st Site) Size(ctx context.Context, board string) (profiles, posts int64, err error) {
	if err := st.tx.row(ctx, `SELECT COALESCE(max(seq), 0) FROM profile`).Scan(&profiles); err != nil {
		return 0, 0, err
	}
	_, posts, err = st.tx.Logs().Head(ctx, board)
	if err == ErrNotFound {
		err = nil
	}
	return profiles, posts, err
}

// NumberedProfiles returns the listed profiles with numbers above after and up to
// upTo.
func (st Site) NumberedProfiles(ctx context.Context, after, upTo int64) ([]PlacedProfile, error) {
	return placedOf(list[profileRow](ctx, st.tx, profileTable.from+`WHERE seq > ? AND seq <= ? AND listed ORDER BY seq`, after, upTo))
}

// Profiles returns handle and time of the same profiles.
func (st Site) Profiles(ctx context.Context, after, upTo int64) ([]Listed, error) {
	return list[Listed](ctx, st.tx, `SELECT handle AS name, updated_at AS changed FROM profile WHERE seq > ? AND seq <= ? AND listed ORDER BY seq`, after, upTo)
}

const (
	createdHere = `SELECT object_id FROM log WHERE stream = (SELECT id FROM stream WHERE board = ?)
		AND seq > ? AND seq <= ? AND kind = 'create' AND activity IS NULL ORDER BY seq`

	// A page changes with the last reply it shows. The number of a post begins with
	// the time in its id (seqOf).
	listedPosts = ` SELECT p.id AS name, p.created_at AS changed, CASE WHEN p.reply_count > 0 THEN
			(SELECT max(r.seq) FROM post r WHERE r.in_reply_to = p.id AND r.state = 'visible' AND r.in_reply_to IS NOT NULL) END AS reply
		FROM want JOIN post p ON p.seq BETWEEN want.low AND want.high AND p.id = want.id
		WHERE p.state = 'visible' AND p.node IS NULL`

	wanted     = `(CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT))`
	listedStep = 250
)

// Posts returns the visible posts whose creation is in the log of a board under
// numbers above after and up to upTo. Posts of other nodes are not included: their
// pages are on those nodes.
func (st Site) Posts(ctx context.Context, board string, after, upTo int64) ([]Listed, error) {
	ids, err := list[string](ctx, st.tx, createdHere, board, after, upTo)
	if err != nil {
		return nil, err
	}
	all := []Listed{}
	for len(ids) > 0 {
		n := min(len(ids), listedStep)
		some, err := st.posts(ctx, ids[:n])
		if err != nil {
			return nil, err
		}
		all, ids = append(all, some...), ids[n:]
	}
	sorting.Stable(all, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (st Site) posts(ctx context.Context, ids []string) ([]Listed, error) {
	text, args := listedPostsQuery(ids)
	type row struct {
		Listed
		Reply *int64
	}
	rows, err := list[row](ctx, st.tx, text, args...)
	all := make([]Listed, len(rows))
	for i, r := range rows {
		if all[i] = r.Listed; r.Reply != nil {
			all[i].Changed = moment(max(millis(r.Changed), min(*r.Reply>>21, millis(st.tx.Now))))
		}
	}
	return all, err
}

func listedPostsQuery(ids []string) (string, []any) {
	args := make([]any, 0, 3*len(ids))
	for _, id := range ids {
		if !protocol.IsID(protocol.PostID, id) {
			id = ""
		}
		args = append(args, idRange(id)...)
	}
	return `WITH want (low, high, id) AS (VALUES ` + wanted + strings.Repeat(", "+wanted, len(ids)-1) + `)` + listedPosts, args
}
