package storage

import (
	"context"

	"stoa/protocol"
)

// The words of posts are counted some seconds after a post is stored: processes that store posts at the same time would
// otherwise wait for each other at the rows of common words.

var freshInsert = insert{Into: `INSERT INTO post_fresh (seq) VALUES `, Row: `(?)`}

// holdWords leaves writing the words of a post to the end of the batch, and counting them to the job.
func (ps Posts) holdWords(p *protocol.StoredPost, seq int64) error {
	if err := ps.tx.hold(heldFresh, seq); err != nil {
		return err
	}
	return ps.tx.hold(heldWords, seq, postText(p))
}

// eachPostField calls field for every searched text of a post with its class.
func eachPostField(p *protocol.Post, field func(class int, s string)) {
	field(0, p.Title)
	for _, tag := range p.Tags {
		field(1, tag)
	}
	field(2, p.Body)
}

// postFields are the searched texts of a post, its title first.
func postFields(p *protocol.Post) []field {
	return []field{newField(weightName, p.Title), newField(weightTag, p.Tags...), newField(weightPlain, p.Body)}
}

func countPost(p *protocol.Post, count map[string]int) {
	seen := map[string]bool{}
	eachPostField(p, func(_ int, s string) {
		for _, w := range foldWords(s) {
			if isTerm(w) && !seen[w] {
				seen[w] = true
				count[w]++
			}
		}
	})
}

// freshPosts is how many posts are counted in one transaction.
const freshPosts = 200

const takeFresh = `DELETE FROM post_fresh WHERE seq IN (SELECT seq FROM post_fresh ORDER BY seq LIMIT ?) RETURNING seq`

// Fresh reports whether posts wait for their words to be counted.
func (ps Posts) Fresh(ctx context.Context) (bool, error) {
	return ps.tx.exists(ctx, `SELECT 1 FROM post_fresh LIMIT 1`)
}

// CountFresh counts the words of some posts that are not counted yet, and returns how many posts these were.
func (ps Posts) CountFresh(ctx context.Context) (int, error) {
	if err := ps.tx.dirty(); err != nil {
		return 0, err
	}
	seqs, err := list[int64](ctx, ps.tx, takeFresh, freshPosts) // their rows stay locked: what hides one waits
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	posts, err := ps.bySeqs(ctx, seqs)
	if err != nil {
		return 0, err
	}
	count := map[string]int{}
	for i := range posts {
		countPost(&posts[i].Post, count)
	}
	return len(seqs), ps.tx.countTerms(ctx, postTerms, count, 1)
}

// uncount takes away the words of a post that is no longer visible.
func (ps Posts) uncount(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	n, err := ps.tx.write(ctx, `DELETE FROM post_fresh WHERE seq = ?`, seq)
	if err != nil || n > 0 {
		return err
	}
	count := map[string]int{}
	countPost(&p.Post, count)
	return ps.tx.countTerms(ctx, postTerms, count, -1)
}

// recountAll leaves counting all posts to the job.
func (ps Posts) recountAll(ctx context.Context) error {
	for _, text := range []string{`DELETE FROM post_fresh`, `DELETE FROM post_term`,
		`INSERT INTO post_fresh (seq) SELECT seq FROM post WHERE state = 'visible'`} {
		if _, err := ps.tx.write(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
