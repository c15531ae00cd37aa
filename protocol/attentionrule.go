package protocol

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"
)

// A PlacedBid is a live bid, as far as the rules of its board need it.
type PlacedBid struct {
	ID     string
	Paise  int64
	BidAt  time.Time // when it was made, not when it was paid
	FreeAt time.Time // from when it may be displaced
	Slot   int
}

// A KeptSlot is a slot that an unpaid bid keeps until a time: a reserving hold, or a claimed
// payment.
type KeptSlot struct {
	Slot  int
	Until time.Time
}

// A BoardView is what decides about bids on a board. Kept holds no slot whose time is over.
type BoardView struct {
	Terms     BoardTerms
	Live      []PlacedBid
	Kept      []KeptSlot
	Contested int // unpaid bids that keep no slot
}

// ranks orders bids: the higher amount first, then the earlier bid, then the id.
func ranks(a, b PlacedBid) int {
	return cmp.Or(cmp.Compare(b.Paise, a.Paise), a.BidAt.Compare(b.BidAt), strings.Compare(a.ID, b.ID))
}

// Rank returns the live bids in the order of their places.
func (v BoardView) Rank() []PlacedBid {
	return slices.SortedFunc(slices.Values(v.Live), ranks)
}

// Free is how many slots are free.
func (v BoardView) Free() int { return max(0, v.Terms.Slots-len(v.Live)-len(v.Kept)) }

// FreeSlot returns the lowest number of a free slot; ok is false when there is none.
func (v BoardView) FreeSlot() (slot int, ok bool) {
	if v.Free() == 0 {
		return 0, false
	}
	taken := map[int]bool{}
	for _, b := range v.Live {
		taken[b.Slot] = true
	}
	for _, k := range v.Kept {
		taken[k.Slot] = true
	}
	for slot = 1; taken[slot]; slot++ {
	}
	return slot, true
}

// A Basis says how a slot can be had.
type Basis string

const (
	BasisFree     Basis = "free"     // a slot is free
	BasisDisplace Basis = "displace" // by displacing the lowest live bid that is not protected
	BasisNone     Basis = "none"     // not now
)

// A SlotQuote is the price of a slot at a moment, in paise. Unpaid bids never raise it: otherwise
// anyone could freeze a board for nothing.
type SlotQuote struct {
	Basis         Basis
	Price         int64      // 0 with BasisNone
	Displaces     *PlacedBid // with BasisDisplace
	SlotAt        *time.Time // without a free slot: when the next one may become free, because an unpaid bid keeps it
	DisplaceAt    *time.Time // with BasisNone: when a live bid may be displaced next
	CategoryFloor int64
}

// Quote returns the price of a slot in a category, whose floor is given. The board must accept
// bids.
func (v BoardView) Quote(floor int64, now time.Time) SlotQuote {
	q := SlotQuote{Basis: BasisNone, CategoryFloor: floor}
	if v.Free() > 0 {
		q.Basis, q.Price = BasisFree, floor
		return q
	}
	for _, k := range v.Kept {
		if q.SlotAt == nil || k.Until.Before(*q.SlotAt) {
			q.SlotAt = new(k.Until)
		}
	}
	lowest, next := v.Displaceable(now)
	if lowest == nil {
		q.DisplaceAt = next
		return q
	}
	q.Basis, q.Displaces = BasisDisplace, lowest
	q.Price = max(floor, lowest.Paise+v.Terms.Step)
	return q
}

// Displaceable returns the lowest live bid that is not protected; nil when all are, and then when
// the first ceases to be.
func (v BoardView) Displaceable(now time.Time) (lowest *PlacedBid, next *time.Time) {
	for _, b := range v.Live {
		if at := b.FreeAt; at.After(now) {
			if next == nil || at.Before(*next) {
				next = &at
			}
		} else if lowest == nil || ranks(b, *lowest) > 0 {
			lowest = &b
		}
	}
	return lowest, next
}

// Place returns the place that a new bid of an amount would have among the live bids: 1 is the
// highest.
func (v BoardView) Place(paise int64) int {
	place := 1
	for _, b := range v.Live {
		if b.Paise >= paise { // an equal amount that was bid earlier ranks higher
			place++
		}
	}
	return place
}

// A Verdict is what becomes of a paid bid.
type Verdict struct {
	Live      bool
	Slot      int
	Displaces *PlacedBid
}

// Settle decides about a paid bid: it gets the slot that it keeps, a free one, or that of the
// lowest unprotected live bid if it exceeds that by the step under which it was made. Otherwise it
// is refunded. v.Kept is without the bid's own slot.
func (v BoardView) Settle(paise, step int64, own int, now time.Time) Verdict {
	if own > 0 {
		return Verdict{Live: true, Slot: own}
	}
	if slot, ok := v.FreeSlot(); ok {
		return Verdict{Live: true, Slot: slot}
	}
	if lowest, _ := v.Displaceable(now); lowest != nil && paise >= lowest.Paise+step {
		return Verdict{Live: true, Slot: lowest.Slot, Displaces: lowest}
	}
	return Verdict{}
}

// UnusedRefund returns what a bid gets back that is displaced at a time, or whose board closes: all
// within the first hours that the board names, later for the unused part of its time, rounded down
// to the paisa, and nothing below a rupee, which providers do not move.
func UnusedRefund(paise int64, liveAt, endsAt, now time.Time, fullHours int) int64 {
	whole, unused := endsAt.Sub(liveAt), endsAt.Sub(now)
	switch {
	case unused <= 0 || whole <= 0:
		return 0
	case unused >= whole || now.Before(liveAt.Add(time.Duration(fullHours)*time.Hour)):
		return paise
	}
	part := new(big.Int).Mul(big.NewInt(paise), big.NewInt(unused.Milliseconds()))
	return movable(part.Quo(part, big.NewInt(whole.Milliseconds())).Int64())
}

// ExcessRefund returns what goes back of a payment that is more than its bid: nothing below a rupee.
func ExcessRefund(paid, bid int64) int64 { return movable(paid - bid) }

// movable returns an amount that providers move, otherwise 0.
func movable(paise int64) int64 {
	if paise < MinFloor {
		return 0
	}
	return paise
}

// SentBack reports whether a bid that is paid has all of its money back, so that it keeps no slot: less than a rupee of
// the payment is left, after everything that was sent back of it or is to be.
func SentBack(paid, back int64) bool { return movable(paid-back) == 0 }
