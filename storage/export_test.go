package storage

import "context"

// FindPosts searches with steps so small that a test reaches each.
func FindPosts(ctx context.Context, tx *Tx, words []string, before int64, limit, near, few, far int) ([]int64, error) {
	w := postWords
	w.steps = steps{near: near, few: few, far: far}
	return w.find(ctx, tx, words, before, limit)
}
