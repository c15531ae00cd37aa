package storage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/protocol"
)

// A search by relevance reads the index in stages, the better place first, and of each in blocks of its order; a block is read,
// ranked and shown whole. So the best come first among all that match when these are few, and among the next
// ones of the best stage when they are many, and a page costs what a block does.

// blockRows is how many rows are ranked at once: on PostgreSQL, which reads the newest rows of a common word one by one, more cost more.
const blockRows = 60

// A rankedWalk is a position in a search by relevance: a block of a stage, and a row in it.
type rankedWalk struct {
	way      byte
	few      int // 1: one stage is enough
	stage    int
	from, to int64 // numbers around the block, from the last before it to the last in it; -1 when it is not begun
	score    int   // of the last row that was shown
	at       int64 // its number; in a fixed list the rows of the block that were shown, a bit each
	clock    int64 // moment of the list, where it has one
}

const rankedForm = "r%c%d.%d.%d.%d.%d.%d.%d"

func (w rankedWalk) String() string {
	return fmt.Sprintf(rankedForm, w.way, w.few, w.stage, w.from, w.to, w.score, w.at, w.clock)
}

func resumeRanked(listing, after string) (w rankedWalk, err error) {
	at, err := protocol.ParseCursor(listing, after)
	if err != nil || at == "" {
		return w, err
	}
	var way rune
	if _, err := fmt.Sscanf(at, rankedForm, &way, &w.few, &w.stage, &w.from, &w.to, &w.score, &w.at, &w.clock); err != nil || way > 'z' {
		return w, errListCursor()
	}
	if w.way = byte(way); w.String() != at || w.stage < 0 || w.from < -1 || w.to < -1 || !strings.ContainsRune("amkso", way) {
		return w, errListCursor()
	}
	return w, nil
}

func errListCursor() error {
	return protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this list with these conditions; leave it out to start from the beginning")
}

func cursorTo(listing, next string) *string {
	if next == "" {
		return nil
	}
	return protocol.Cursor(listing, next)
}

// beginRanked is the beginning of a list after a number.
func beginRanked(u *understood, after, clock int64) rankedWalk {
	w := rankedWalk{way: u.way, from: after, to: -1, score: math.MaxInt32, clock: clock}
	if u.few {
		w.few = 1
	}
	return w
}

// A rankedList is the rows of a list, as a search by relevance reads them.
type rankedList struct {
	limit  int
	up     bool  // the lowest numbers first
	fixed  bool  // the rows of a block stay the same, though their texts may change
	most   int   // rows that are looked at for one page
	begin  int64 // the number before all
	number func(pos int64) int64
	find   func(ctx context.Context, c condition, from int64, limit int) ([]int64, error)
	read   func(ctx context.Context, at []int64) (n int, err error)
	fields func(row int, some bool) []field // of those that were read
	place  func(row int) int64              // its number
	show   func(row int)
}

// walk shows a page from w on, and returns the next position; "" after the last row. Without a resumed one it begins with u.first.
func (l *rankedList) walk(ctx context.Context, u *understood, w rankedWalk, resumed bool) (next string, err error) {
	again := w.to >= 0 && resumed
	if w.few == 1 {
		u.stages = []condition{u.whole}
	}
	if w.stage >= len(u.stages) {
		return "", errListCursor()
	}
	r := newRanker(u.terms, u.partial())
	shown := 0
	for looked := 0; ; {
		at, more := u.first, false
		if again || len(at) == 0 || w.few == 0 {
			want := blockRows
			if again {
				want += blockRows // some may match now that did not
			}
			if at, err = l.find(ctx, u.stages[w.stage], w.from, want); err != nil {
				return "", err
			}
			more = len(at) == want
		}
		if again {
			at, more = l.within(at, w.to), true
		} else if len(at) > 0 {
			w.to = l.number(at[len(at)-1])
			if w.from == math.MaxInt64 { // newer ones are not in the block
				w.from = l.number(at[0]) + 1
			}
		}
		looked += len(at)
		n, err := l.read(ctx, at)
		if err != nil {
			return "", err
		}
		for _, place := range r.rank(n, l.fields) {
			score, number := int(-place[0]), l.place(int(place[1]))
			if l.fixed {
				score, number = 0, w.at|1<<slices.Index(at, number)
			}
			if again && l.shown(w, score, number) {
				continue
			}
			if shown == l.limit {
				return w.String(), nil
			}
			l.show(int(place[1]))
			shown++
			w.score, w.at = score, number
		}
		again = false
		switch {
		case more:
			w.from, w.score, w.at = w.to, math.MaxInt32, 0
		case w.stage+1 < len(u.stages):
			w.stage, w.from, w.score, w.at = w.stage+1, l.begin, math.MaxInt32, 0
		default:
			return "", nil
		}
		if looked > l.most {
			w.to = -1
			return w.String(), nil
		}
	}
}

// shown reports whether a row of a block was on an earlier page.
func (l *rankedList) shown(w rankedWalk, score int, number int64) bool {
	if l.fixed {
		return number == w.at
	}
	return score > w.score || score == w.score && (number == w.at || (number < w.at) == l.up)
}

// within are the rows of a block up to its last number.
func (l *rankedList) within(at []int64, to int64) []int64 {
	return slices.DeleteFunc(slices.Clone(at), func(pos int64) bool { return (l.number(pos) > to) == l.up && l.number(pos) != to })
}
