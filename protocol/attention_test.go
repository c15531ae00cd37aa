package protocol

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestAttentionDraft_Defaults(t *testing.T) {
	t.Parallel()
	terms, faults := AttentionDraft{}.Terms()
	require.Empty(t, faults)
	require.Equal(t, BoardTerms{Floor: 100_00, Step: 10_00, MaxBid: 1_00_000_00, Slots: 5, SlotDays: 7, ProtectHours: 24, ClaimHours: 12,
		Accepting: true, AutoApprove: true}, terms)

	terms, faults = AttentionDraft{Floor: "500000", Categories: []BoardCategory{{Name: " Yarn "}, {Name: "Paper", Floor: "500000"}}, ProtectHours: new(0)}.Terms()
	require.Empty(t, faults)
	require.EqualValues(t, 500_000_00, terms.MaxBid, "never below the floor")
	require.EqualValues(t, 25_000_00, terms.Step, "5 % of the floor")
	require.Zero(t, terms.ProtectHours)
	require.Equal(t, []CategoryFloor{{"Yarn", 500_000_00}, {"Paper", 500_000_00}}, terms.Categories)
	c, ok := terms.Category("yARN")
	require.True(t, ok)
	require.Equal(t, "Yarn", c.Name)
	_, ok = terms.Category("ink")
	require.False(t, ok)
}

func TestAttentionDraft_Faults(t *testing.T) {
	t.Parallel()
	for at, d := range map[string]AttentionDraft{
		"/floor":              {Floor: "0.99"},
		"/step":               {Step: "0"},
		"/maxBid":             {Floor: "200", MaxBid: "199.99"},
		"/categories/0/floor": {Floor: "200", Categories: []BoardCategory{{Name: "a", Floor: "100"}}},
		"/categories/1/name":  {Categories: []BoardCategory{{Name: "a"}, {Name: "A"}}},
		"/respondWithinDays":  {RefundIfNoReply: true},
	} {
		faults := d.Check()
		require.Len(t, faults, 1, at)
		require.Equal(t, at, faults[0].Pointer)
	}
	var at []string
	for _, f := range CheckLimits("", AttentionDraft{Rules: " ", Categories: []BoardCategory{{Name: "a\nb"}}}) {
		at = append(at, f.Pointer)
	}
	require.Equal(t, []string{"/rules", "/categories/0/name"}, at)
	require.Equal(t, "/respondWithinDays", AttentionDraft{RefundIfNoReply: true, RespondWithinDays: new(8)}.Check()[0].Pointer, "longer than the slot")
	require.Empty(t, AttentionDraft{RefundIfNoReply: true, RespondWithinDays: new(7)}.Check())
	for _, amount := range []Decimal{"1e3", "-1", "1.005", "1.", ".5", "", "10000000000.01", "+1", "1,000"} {
		require.NotEmpty(t, append(amountFaults(amount), missing(amount)...), "%q", amount)
	}
	for amount, paise := range map[Decimal]int64{"1": 100, "120.50": 12050, "120.5": 12050, "1.10000": 110, "0.01": 1} {
		require.Empty(t, amountFaults(amount))
		require.Equal(t, paise, BidCheck{Amount: amount}.Paise())
	}
}

// missing is the fault of the schema for a value that is left out.
func missing(d Decimal) []Fault {
	if d == "" {
		return []Fault{{"/amount", "required", ""}}
	}
	return nil
}

// placed is a live bid of an amount in rupees that may be displaced from noon on.
func placed(id string, rupees int64, slot int) PlacedBid {
	return PlacedBid{ID: id, Paise: rupees * 100, BidAt: noon.Add(-48 * time.Hour), FreeAt: noon, Slot: slot}
}

func viewOf(slots int, live ...PlacedBid) BoardView {
	terms, _ := AttentionDraft{Slots: slots}.Terms()
	return BoardView{Terms: terms, Live: live}
}

func TestSlotPrice(t *testing.T) {
	t.Parallel()
	protected := placed("bid_p", 100, 1)
	protected.FreeAt = noon.Add(time.Second)
	for _, tt := range []struct {
		name      string
		v         BoardView
		floor     int64
		basis     Basis
		price     int64
		displaces string
	}{
		{"empty", viewOf(2), 100_00, BasisFree, 100_00, ""},
		{"a category's floor", viewOf(2), 300_00, BasisFree, 300_00, ""},
		{"one free", viewOf(2, placed("bid_a", 900, 1)), 100_00, BasisFree, 100_00, ""},
		{"full: the lowest and the step", viewOf(2, placed("bid_a", 900, 1), placed("bid_b", 500, 2)), 100_00, BasisDisplace, 510_00, "bid_b"},
		{"the floor where it is higher", viewOf(1, placed("bid_a", 100, 1)), 700_00, BasisDisplace, 700_00, "bid_a"},
		{"protected to the second", viewOf(1, protected), 100_00, BasisNone, 0, ""},
		{"the lowest is protected, the next is not", viewOf(2, protected, placed("bid_b", 500, 2)), 100_00, BasisDisplace, 510_00, "bid_b"},
	} {
		q := tt.v.Quote(tt.floor, noon)
		require.Equal(t, tt.basis, q.Basis, tt.name)
		require.Equal(t, tt.price, q.Price, tt.name)
		if tt.displaces == "" {
			require.Nil(t, q.Displaces, tt.name)
		} else {
			require.Equal(t, tt.displaces, q.Displaces.ID, tt.name)
		}
	}
	require.Equal(t, noon.Add(time.Second), *viewOf(1, protected).Quote(1, noon).DisplaceAt)
	require.Equal(t, BasisDisplace, viewOf(1, protected).Quote(1, noon.Add(time.Second)).Basis)

	v := viewOf(2, placed("bid_a", 900, 1))
	v.Kept = []KeptSlot{{2, noon.Add(time.Minute)}}
	q := v.Quote(100_00, noon)
	require.Equal(t, BasisDisplace, q.Basis, "an unpaid hold keeps its slot and raises no price")
	require.EqualValues(t, 910_00, q.Price)
	require.Equal(t, noon.Add(time.Minute), *q.SlotAt)
}

func TestRank(t *testing.T) {
	t.Parallel()
	early, late := placed("bid_z", 500, 1), placed("bid_a", 500, 2)
	late.BidAt = early.BidAt.Add(time.Millisecond)
	twin := placed("bid_y", 500, 3)
	v := viewOf(4, late, placed("bid_top", 501, 4), early, twin)
	var order []string
	for _, b := range v.Rank() {
		order = append(order, b.ID)
	}
	require.Equal(t, []string{"bid_top", "bid_y", "bid_z", "bid_a"}, order, "amount, then when it was bid, then id")
	lowest, _ := v.Displaceable(noon)
	require.Equal(t, "bid_a", lowest.ID)
	require.Equal(t, 5, v.Place(500_00), "an equal amount comes after those before it")
	require.Equal(t, 1, v.Place(501_01))
	require.Equal(t, 2, v.Place(501_00))
}

func TestSettle(t *testing.T) {
	t.Parallel()
	full := viewOf(2, placed("bid_a", 900, 1), placed("bid_b", 500, 2))
	require.Equal(t, Verdict{Live: true, Slot: 2}, full.Settle(1, 10_00, 2, noon), "its own slot")
	require.Equal(t, Verdict{}, full.Settle(509_99, 10_00, 0, noon))
	won := full.Settle(510_00, 10_00, 0, noon)
	require.True(t, won.Live)
	require.Equal(t, 2, won.Slot)
	require.Equal(t, "bid_b", won.Displaces.ID)
	require.Equal(t, Verdict{}, full.Settle(510_00, 10_00, 0, noon.Add(-time.Second)), "all are protected")

	v := viewOf(3, placed("bid_a", 900, 2))
	v.Kept = []KeptSlot{{1, noon.Add(time.Minute)}}
	require.Equal(t, Verdict{Live: true, Slot: 3}, v.Settle(1, 1, 0, noon), "the free slot, whatever its number")
}

func TestUnusedRefund(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	ends := noon.Add(week)
	for _, tt := range []struct {
		name  string
		paise int64
		after time.Duration
		full  int
		want  int64
	}{
		{"at once", 1000_00, 0, 0, 1000_00},
		{"a millisecond later", 1000_00, time.Millisecond, 0, 999_99},
		{"half", 1000_00, week / 2, 0, 500_00},
		{"a third, rounded down", 100_00, week * 2 / 3, 0, 33_33},
		{"the last day", 700_00, 6 * 24 * time.Hour, 0, 100_00},
		{"exactly a rupee", 100_00, week - week/100, 0, 100},
		{"below a rupee", 100_00, week - week/100 + time.Millisecond, 0, 0},
		{"the last moment", 1_00_000_00, week - time.Millisecond, 0, 0},
		{"over", 1000_00, week, 0, 0},
		{"after the end", 1000_00, 2 * week, 0, 0},
		{"within the first hours", 1000_00, 48*time.Hour - time.Millisecond, 48, 1000_00},
		{"just after them", 700_00, 48 * time.Hour, 48, 500_00},
		{"before it began, by clocks that differ", 1000_00, -time.Second, 0, 1000_00},
		{"an amount that would overflow", math.MaxInt64 / 10, week / 2, 0, math.MaxInt64 / 20},
	} {
		require.Equal(t, tt.want, UnusedRefund(tt.paise, noon, ends, noon.Add(tt.after), tt.full), tt.name)
	}
}

// TestBidMoves: money that came in has a way to its end from every state, and no state that has
// ended it is left.
func TestBidMoves(t *testing.T) {
	t.Parallel()
	for _, s := range BidStates {
		require.False(t, s.May(s), s)
		require.False(t, s.May(BidHeld), "nothing is held again")
		if !s.Unpaid() && s != BidLapsed && s != BidWithdrawn && s != BidUnconfirmed {
			continue
		}
		require.True(t, s.May(BidLive), "a late payment may win: %s", s)
		require.True(t, s.May(BidRefundDue), "or is refunded: %s", s)
	}
	for _, s := range []BidState{BidOutbid, BidEnded, BidRemoved, BidUnanswered, BidRefundDue, BidRefundFailed} {
		require.True(t, s.May(BidRefunding), s)
	}
	require.Empty(t, bidMoves[BidRefunded])
}
