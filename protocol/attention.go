package protocol

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Limits of attention boards and bids. Amounts are in paise.
const (
	HoldFor   = 20 * time.Minute // an unpaid hold, exactly (spec §8)
	HoldGrace = 2 * time.Minute  // a payment that the provider dates so much later still is in time

	MinFloor        = 100         // ₹1, the least that payment providers move
	DefaultFloor    = 100_00      // ₹100
	DefaultMaxBid   = 1_00_000_00 // ₹1,00,000
	DefaultSlotDays = 7
	DefaultProtect  = 24    // hours
	DefaultClaim    = 12    // hours
	minStep         = 10_00 // ₹10
	stepPercent     = 5     // of the floor
	MaxOpenOnBoard  = 1     // unpaid bids of one author on one board
	MaxOpenOnNode   = 3     // and on all boards of the node
	MaxLapsed       = 3     // lapsed holds of one author in LapsedWithin; then only competing holds
	LapsedWithin    = 24 * time.Hour
	MaxClaims       = 3                  // references that a payer may give for one bid
	MaxDenied       = 3                  // claims of one author that the owner denied; then it is blocked on the board
	LateFor         = 3 * 24 * time.Hour // after the hold; for so long a payment is still looked for, and may be reported
)

// BoardTerms are the rules of an attention board, as they are stored. Zero is "none" for
// RespondWithinDays, ProtectHours and FullRefundHours. A bid keeps the terms under which it was
// made.
type BoardTerms struct {
	Rules             string          `json:"rules,omitempty"`
	Floor             int64           `json:"floor"`
	Step              int64           `json:"step"`
	MaxBid            int64           `json:"maxBid"`
	Slots             int             `json:"slots"`
	SlotDays          int             `json:"slotDays"`
	ProtectHours      int             `json:"protectHours"`
	FullRefundHours   int             `json:"fullRefundHours"`
	RespondWithinDays int             `json:"respondWithinDays"`
	RefundIfNoReply   bool            `json:"refundIfNoReply"`
	ClaimHours        int             `json:"claimHours"`
	Categories        []CategoryFloor `json:"categories,omitempty"`
	Accepting         bool            `json:"accepting"`
	AutoApprove       bool            `json:"autoApprove"`
}

// CategoryPrices are the categories with the least bid in each.
func (t BoardTerms) CategoryPrices() []CategoryPrice {
	out := make([]CategoryPrice, 0, len(t.Categories))
	for _, c := range t.Categories {
		out = append(out, CategoryPrice{Name: c.Name, Floor: MoneyOf(Rupee, max(c.Floor, t.Floor))})
	}
	return out
}

// A CategoryFloor is a category of a board and its floor in paise, which is at least the board's.
type CategoryFloor struct {
	Name  string `json:"name"`
	Floor int64  `json:"floor"`
}

// SlotFor is how long a bid is live.
func (t BoardTerms) SlotFor() time.Duration { return time.Duration(t.SlotDays) * 24 * time.Hour }

// Category returns the category of that name in any case; ok is false when there is none. The
// empty name is no category, with the board's floor.
func (t BoardTerms) Category(name string) (c CategoryFloor, ok bool) {
	if name == "" {
		return CategoryFloor{Floor: t.Floor}, true
	}
	for _, c := range t.Categories {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return CategoryFloor{}, false
}

// A BoardCategory is a category of an attention board, to be written.
type BoardCategory struct {
	Name  string  `json:"name" line:"true" minLength:"1" maxLength:"40" doc:"Name of the category."`
	Floor Decimal `json:"floor,omitempty" decimal:"true" doc:"Least bid in this category, in rupees. Left out: the board's floor."`
}

// An AttentionDraft is an attention board as its owner writes it. What is left out gets its
// default.
type AttentionDraft struct {
	Owned
	Rules             string          `json:"rules,omitempty" visible:"true" maxLength:"2000" doc:"What you give attention to, and how; plain text for bidders."`
	Floor             Decimal         `json:"floor,omitempty" decimal:"true" doc:"Least bid in rupees; at least 1. Default: 100."`
	Step              Decimal         `json:"step,omitempty" decimal:"true" doc:"By how many rupees a bid must exceed the one that it displaces. Default: 10, or 5 % of the floor if that is more."`
	MaxBid            Decimal         `json:"maxBid,omitempty" decimal:"true" doc:"Highest bid in rupees. Default: 100000, or the floor if that is more."`
	Slots             int             `json:"slots,omitempty" minimum:"1" maximum:"100" default:"5" doc:"How many bids are live at once."`
	SlotDays          int             `json:"slotDays,omitempty" minimum:"1" maximum:"90" default:"7" doc:"How many days a bid is live."`
	ProtectHours      *int            `json:"protectHours,omitempty" minimum:"0" maximum:"168" default:"24" doc:"For how many hours a live bid cannot be displaced."`
	FullRefundHours   int             `json:"fullRefundHours,omitempty" minimum:"0" maximum:"2160" default:"0" doc:"A bid that is displaced within so many hours gets all of its money back; later, for the unused part of its time."`
	RespondWithinDays *int            `json:"respondWithinDays,omitempty" minimum:"1" maximum:"30" doc:"Within how many days you answer. Left out: no promise."`
	RefundIfNoReply   bool            `json:"refundIfNoReply,omitempty" doc:"A bid that you do not answer in time gets all of its money back. Needs respondWithinDays, at most slotDays."`
	ClaimHours        int             `json:"claimHours,omitempty" minimum:"1" maximum:"72" default:"12" doc:"For how many hours a payment that the payer reports by its UTR waits for you to confirm it."`
	Categories        []BoardCategory `json:"categories,omitempty" maxItems:"20" doc:"Categories that a bid may name, each with its floor."`
	Accepting         *bool           `json:"accepting,omitempty" default:"true" doc:"Whether the board takes bids now."`
	AutoApprove       *bool           `json:"autoApprove,omitempty" default:"true" doc:"Whether the text of a paid bid is public at once. If false, it is shown after approve_bid; the bid has its slot meanwhile."`
}

// Check returns the faults of amounts, categories and of members that depend on each other.
func (d AttentionDraft) Check() []Fault {
	_, faults := d.Terms()
	return faults
}

// DefaultSlots is the number of slots of a board whose owner named none.
const DefaultSlots = 5

// Terms returns the rules that the draft means, with every default.
func (d AttentionDraft) Terms() (BoardTerms, []Fault) {
	var faults []Fault
	amount := func(at string, text Decimal, least, otherwise int64) int64 {
		if text == "" {
			return otherwise
		}
		paise, fault := text.Paise()
		switch {
		case fault != nil:
			faults = append(faults, Fault{at, fault.Code, fault.Detail})
			return otherwise
		case paise < least:
			faults = append(faults, Fault{at, "out-of-range", "at least " + MoneyOf(Rupee, least).Amount + " rupees"})
		}
		return paise
	}
	t := BoardTerms{
		Rules: d.Rules, Floor: amount("/floor", d.Floor, MinFloor, DefaultFloor), Slots: cmp.Or(d.Slots, DefaultSlots), SlotDays: cmp.Or(d.SlotDays, DefaultSlotDays),
		ProtectHours: valueOr(d.ProtectHours, DefaultProtect), FullRefundHours: d.FullRefundHours, RespondWithinDays: valueOr(d.RespondWithinDays, 0),
		RefundIfNoReply: d.RefundIfNoReply, ClaimHours: cmp.Or(d.ClaimHours, DefaultClaim), Accepting: valueOr(d.Accepting, true),
		AutoApprove: valueOr(d.AutoApprove, true),
	}
	t.Step = amount("/step", d.Step, 1, max(minStep, t.Floor*stepPercent/100))
	t.MaxBid = amount("/maxBid", d.MaxBid, t.Floor, max(DefaultMaxBid, t.Floor))
	known := map[string]bool{}
	for i, c := range d.Categories {
		at := fmt.Sprintf("/categories/%d", i)
		name := strings.TrimSpace(c.Name)
		folded := strings.ToLower(name)
		switch {
		case name == "" && c.Name != "":
			faults = append(faults, Fault{at + "/name", "blank", "must contain a visible character"})
		case known[folded]:
			faults = append(faults, Fault{at + "/name", "repeated", "another category has this name"})
		}
		known[folded] = true
		floor := amount(at+"/floor", c.Floor, t.Floor, t.Floor)
		if floor > t.MaxBid {
			faults = append(faults, Fault{at + "/floor", "out-of-range", "must not exceed maxBid"})
		}
		t.Categories = append(t.Categories, CategoryFloor{name, floor})
	}
	switch {
	case t.RefundIfNoReply && t.RespondWithinDays == 0:
		faults = append(faults, Fault{"/respondWithinDays", "required", "refundIfNoReply needs the number of days within which you answer"})
	case t.RefundIfNoReply && t.RespondWithinDays > t.SlotDays:
		faults = append(faults, Fault{"/respondWithinDays", "out-of-range", "with refundIfNoReply at most slotDays: a bid that is over is not refunded"})
	}
	return t, faults
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
