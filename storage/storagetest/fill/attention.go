package fill

import (
	"context"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// BoardCategories are the categories of attention boards; a board has up to three.
var BoardCategories = []string{"Yarn", "Paper", "Tools", "Training", "Hiring", "Events"}

// persons returns how many of the first profiles are persons.
func persons(profiles int) (n int) {
	for i := range profiles % 10 {
		if !business(i) {
			n++
		}
	}
	return profiles/10*7 + n
}

var errBoards = errors.New("fill: seven of ten profiles are persons, who have at most one attention board each")

// hasBoard reports whether the profile of a number has an attention board.
func (w *writer) hasBoard(n int) bool { return !business(n) && persons(n) < w.Boards }

// board opens the attention board of the person of a number.
func (w *writer) board(ctx context.Context, tx *storage.Tx, n int) error {
	k := persons(n)
	r := w.of(4, k)
	draft := protocol.AttentionDraft{Rules: w.text(r, 8, 25), Slots: 1 + r.IntN(9)}
	for i := range r.IntN(4) {
		draft.Categories = append(draft.Categories, protocol.BoardCategory{Name: BoardCategories[(k+i)%len(BoardCategories)]})
	}
	terms, _ := draft.Terms()
	return tx.AttentionBoards().Put(ctx, &storage.AttentionBoard{Handle: Handle(n), Open: true, Terms: terms})
}
