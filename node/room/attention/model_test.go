package attention_test

import (
	"cmp"
	"slices"
	"time"

	"stoa/protocol"
)

// A modelBid is a bid of the reference model, which knows nothing of tables and jobs.
type modelBid struct {
	id       string
	by       int // the bidder
	at       time.Time
	paise    int64
	state    protocol.BidState
	keeps    bool
	until    time.Time
	free     time.Time
	ends     time.Time
	refunded int64
	paid     int64
	payment  string // that got the slot
	given    int64  // what the owner sent back at the provider
	owed     int64  // of its money, when it left the board
}

// A model is what the rules say about a board, written as plainly as possible.
type model struct {
	slots, protect, days int
	step                 int64
	bids                 []*modelBid
}

func (m *model) advance(now time.Time) {
	for _, b := range m.bids {
		switch {
		case b.state == protocol.BidHeld && !b.until.After(now):
			b.state, b.keeps = protocol.BidLapsed, false
		case b.state == protocol.BidLive && !b.ends.After(now):
			b.state = protocol.BidEnded
		}
	}
}

func (m *model) live() (all []*modelBid) {
	for _, b := range m.bids {
		if b.state == protocol.BidLive {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b *modelBid) int {
		return cmp.Or(cmp.Compare(b.paise, a.paise), a.at.Compare(b.at), cmp.Compare(a.id, b.id))
	})
	return all
}

func (m *model) clone() *model {
	other := *m
	other.bids = nil
	for _, b := range m.bids {
		other.bids = append(other.bids, new(*b))
	}
	return &other
}

func (m *model) used(except *modelBid) (n int) {
	for _, b := range m.bids {
		if b.state == protocol.BidLive || b.keeps && b != except {
			n++
		}
	}
	return n
}

func (m *model) lowest(now time.Time) *modelBid {
	all := m.live()
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].free.After(now) {
			return all[i]
		}
	}
	return nil
}

// admits says whether a bid is made, and whether it keeps a slot.
func (m *model) admits(paise int64, now time.Time) (made, keeps bool) {
	if m.used(nil) < m.slots {
		return true, true
	}
	low := m.lowest(now)
	return low != nil && paise >= low.paise+m.step, false
}

// withdraws says whether the bidder may take the bid back.
func (m *model) withdraws(b *modelBid) bool {
	if b.state != protocol.BidHeld && b.state != protocol.BidWithdrawn {
		return false
	}
	b.state, b.keeps = protocol.BidWithdrawn, false
	return true
}

// removes says whether the owner may remove the bid.
func (m *model) removes(b *modelBid) bool {
	if b.state != protocol.BidLive {
		return false
	}
	b.state, b.owed = protocol.BidRefunded, b.paise-b.given
	b.refunded += b.owed
	return true
}

// gives is what follows when the owner sends back a part of a live bid's payment at the provider: without a rupee
// left, the bid leaves the board.
func (m *model) gives(b *modelBid, paise int64) {
	if b.state != protocol.BidLive {
		if paise != b.owed { // else it is what is owed; otherwise that is part of it
			b.refunded += min(paise, b.paid-b.refunded)
		}
		return
	}
	b.given += paise
	b.refunded += paise
	if b.paid-b.refunded < 100 {
		b.state = protocol.BidRefunded
	}
}

// pays is what follows from a payment.
func (m *model) pays(b *modelBid, payment string, paise int64, now time.Time) {
	b.paid += paise
	unpaid := b.state == protocol.BidHeld || b.state == protocol.BidLapsed || b.state == protocol.BidWithdrawn
	if !unpaid || paise < b.paise {
		b.refunded += paise
		return
	}
	if !b.keeps && m.used(b) >= m.slots {
		low := m.lowest(now)
		if low == nil || b.paise < low.paise+m.step {
			b.state = protocol.BidRefunded
			b.refunded += paise
			return
		}
		low.state = protocol.BidOutbid
		span := time.Duration(m.days) * 24 * time.Hour
		rest := low.paise - low.given
		back := rest * low.ends.Sub(now).Milliseconds() / span.Milliseconds()
		if low.ends.Sub(now) >= span {
			back = rest
		}
		if back >= 100 {
			low.state, low.owed = protocol.BidRefunded, back
			low.refunded += back
		}
	}
	b.keeps, b.state, b.payment = false, protocol.BidLive, payment
	b.free = now.Add(time.Duration(m.protect) * time.Hour)
	b.ends = now.Add(time.Duration(m.days) * 24 * time.Hour)
	if excess := paise - b.paise; excess >= 100 { // less stays
		b.refunded += excess
	}
}

func (m *model) kept() (sum int64) {
	for _, b := range m.bids {
		sum += b.paid - b.refunded
	}
	return sum
}
