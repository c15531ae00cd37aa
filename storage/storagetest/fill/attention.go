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

// person returns the number of the k-th profile that is a person.
func person(k int) int { return k/7*10 + 3 + k%7 }

var errBoards = errors.New("fill: seven of ten profiles are persons, who have at most one attention board each")

// board opens the attention board of the k-th person.
func (w *writer) board(ctx context.Context, tx *storage.Tx, k int) error {
	r := w.of(4, k)
	draft := protocol.AttentionDraft{Rules: w.text(r, 8, 25), Slots: 1 + r.IntN(9)}
	for i := range r.IntN(4) {
		draft.Categories = append(draft.Categories, protocol.BoardCategory{Name: BoardCategories[(k+i)%len(BoardCategories)]})
	}
	terms, _ := draft.Terms()
	return tx.PutBoard(ctx, &storage.AttentionBoard{Handle: Handle(person(k)), Open: true, Terms: terms})
}
