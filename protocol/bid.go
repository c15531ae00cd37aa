package protocol

// A BidState is the state of a bid (contract §5).
type BidState string

const (
	BidHeld         BidState = "held"          // not paid yet; Hold says whether it keeps a slot
	BidClaimed      BidState = "claimed"       // the payer says that it is paid; the owner has to confirm it
	BidUnconfirmed  BidState = "unconfirmed"   // the owner did not confirm the payment
	BidLapsed       BidState = "lapsed"        // not paid in time
	BidWithdrawn    BidState = "withdrawn"     // by the bidder, before it was paid
	BidLive         BidState = "live"          // paid, and has a slot
	BidOutbid       BidState = "outbid"        // displaced by a higher bid
	BidEnded        BidState = "ended"         // its time is over, or the board closed
	BidRemoved      BidState = "removed"       // by the owner
	BidUnanswered   BidState = "unanswered"    // the owner did not answer in time
	BidRefundDue    BidState = "refund_due"    // paid, and no slot could be had
	BidRefunding    BidState = "refunding"     // the refund was ordered, or waits for the owner
	BidRefunded     BidState = "refunded"      // the refund was made
	BidRefundFailed BidState = "refund_failed" // the provider refused the refund; the owner makes it by hand
)

// BidStates is every state, in the order of a bid's life.
var BidStates = []BidState{BidHeld, BidClaimed, BidUnconfirmed, BidLapsed, BidWithdrawn, BidLive, BidOutbid, BidEnded, BidRemoved, BidUnanswered,
	BidRefundDue, BidRefunding, BidRefunded, BidRefundFailed}

// Unpaid reports whether a bid in the state waits for its payment, or for its confirmation.
func (s BidState) Unpaid() bool { return s == BidHeld || s == BidClaimed }

// A BidHold says what an unpaid bid keeps.
type BidHold string

const (
	HoldReserving BidHold = "reserving" // a slot, until the hold is over
	HoldCompeting BidHold = "competing" // nothing: only the price that it had to meet is fixed
)

// bidMoves are the moves of a bid that an event, a job or a person may cause (contract §5). A paid
// bid is placed, from whatever unpaid or abandoned state the payment finds it in.
var bidMoves = map[BidState][]BidState{
	BidHeld:         {BidLapsed, BidWithdrawn, BidClaimed, BidLive, BidRefundDue},
	BidClaimed:      {BidUnconfirmed, BidLive, BidRefundDue},
	BidUnconfirmed:  {BidClaimed, BidLive, BidRefundDue},
	BidLapsed:       {BidClaimed, BidLive, BidRefundDue},
	BidWithdrawn:    {BidClaimed, BidLive, BidRefundDue},
	BidLive:         {BidOutbid, BidEnded, BidRemoved, BidUnanswered},
	BidOutbid:       {BidRefunding},
	BidEnded:        {BidRefunding},
	BidRemoved:      {BidRefunding},
	BidUnanswered:   {BidRefunding},
	BidRefundDue:    {BidRefunding},
	BidRefunding:    {BidRefunded, BidRefundFailed},
	BidRefundFailed: {BidRefunding, BidRefunded},
}

// May reports whether a bid may move from a state to another.
func (s BidState) May(to BidState) bool {
	for _, t := range bidMoves[s] {
		if t == to {
			return true
		}
	}
	return false
}
