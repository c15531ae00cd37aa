// Package attention is the attention boards of persons (spec §2.12, contract §5): their rules, the
// bids on them, and the money of the bids, which goes from the payer to the owner of the board
// directly.
package attention

import (
	"context"
	"strings"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// An Attention keeps the attention boards of one node.
type Attention struct {
	Base    string // public address of the node, without a slash at the end
	Private bool   // a callbackUrl may be on this machine: development
	Sandbox bool   // the provider that moves no money may be used
	DB      *storage.DB
	Webhook Sender
	LinkKey []byte // makes the tickets of links in mails
	*money.Money
}

// A Sender delivers one signed document; its failures are *webhook.Failure.
type Sender interface {
	Send(ctx context.Context, address, id string, body []byte) error
}

// ReadBoard returns a board with its live bids and the price of a slot.
func (a *Attention) ReadBoard(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.HandleInput) (protocol.AttentionBoard, error) {
	p, b, err := openBoard(ctx, tx, in.Handle)
	if err != nil {
		return protocol.AttentionBoard{}, err
	}
	return a.board(ctx, tx, p, b)
}

// openBoard returns the board of a person, and the person's profile.
func openBoard(ctx context.Context, tx *storage.Tx, handle string) (*storage.StoredProfile, *storage.AttentionBoard, error) {
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if err != nil {
		return nil, nil, storage.IfMissing(err, protocol.NoAgent(handle))
	}
	if !p.Open().AttentionBoard {
		return nil, nil, protocol.Errorf(protocol.NotFound, "@%s has no attention board", handle)
	}
	b, err := tx.AttentionBoards().ByHandle(ctx, handle)
	return p, b, err
}

// board returns a board as everybody sees it.
func (a *Attention) board(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, b *storage.AttentionBoard) (protocol.AttentionBoard, error) {
	t := b.Terms
	out := protocol.AttentionBoard{
		Handle: p.Draft.Handle, Name: p.Draft.Name, Page: a.page(p.Draft.Handle), Rules: t.Rules, Accepting: b.Accepts(),
		Floor: rupees(t.Floor), Step: rupees(t.Step), MaxBid: rupees(t.MaxBid), Slots: t.Slots, SlotDays: t.SlotDays,
		ProtectHours: t.ProtectHours, FullRefundHours: t.FullRefundHours, RefundIfNoReply: t.RefundIfNoReply, AutoApprove: t.AutoApprove,
		Categories: t.CategoryPrices(), Bids: []protocol.LiveBid{}, Untrusted: true,
	}
	if t.RespondWithinDays > 0 {
		out.RespondWithinDays = &t.RespondWithinDays
	}
	if b.Account != "" {
		account, err := tx.PaymentAccounts().ByID(ctx, b.Account)
		if err != nil {
			return out, err
		}
		out.Test = account.Test
		if out.Accepting {
			out.Paid = new(string(account.Provider))
		}
	}
	var err error
	out.Unconfirmed.Disputed = b.Disputes
	if out.Unconfirmed.Known, out.Unconfirmed.Others, err = tx.Bids().Unconfirmed(ctx, b.ID, tx.Now.Add(-protocol.UnconfirmedFor)); err != nil {
		return out, err
	}
	v, err := tx.AttentionBoards().View(ctx, b, "")
	if err != nil {
		return out, err
	}
	out.SlotPrice = slotPrice(v, v.Quote(t.Floor, tx.Now), b.Accepts())
	live, err := tx.Bids().ListLive(ctx, b.ID)
	if err != nil {
		return out, err
	}
	byID := map[string]*storage.StoredBid{}
	for i := range live {
		if byID[live[i].ID], err = tx.Leavings().Bid(ctx, &live[i]); err != nil {
			return out, err
		}
	}
	for i, placed := range v.Rank() {
		if bid := byID[placed.ID]; bid != nil {
			out.Bids = append(out.Bids, liveBid(bid, i+1))
		}
	}
	return out, nil
}

// slotPrice returns a quote as answers contain it.
func slotPrice(v protocol.BoardView, q protocol.SlotQuote, accepting bool) protocol.SlotPrice {
	out := protocol.SlotPrice{Basis: q.Basis, FreeSlots: v.Free(), SlotAt: q.SlotAt, DisplaceAt: q.DisplaceAt, ContestedBy: v.Contested}
	if !accepting {
		return protocol.SlotPrice{Basis: protocol.BasisNone, FreeSlots: v.Free(), ContestedBy: v.Contested}
	}
	if q.Price > 0 {
		out.Price = new(rupees(q.Price))
	}
	return out
}

// liveBid returns a live bid as everybody sees it.
func liveBid(b *storage.StoredBid, place int) protocol.LiveBid {
	out := protocol.LiveBid{
		ID: b.ID, Place: place, Amount: rupees(b.Paise), Bidder: b.Author, Category: protocol.OrNil(b.Category), LiveAt: b.LiveAt, EndsAt: b.EndsAt,
		Protected: b.FreeAt, Answered: !b.AnsweredAt.IsZero(), Test: b.Test, Untrusted: true,
	}
	if b.Approved {
		out.Message, out.URL = &b.Message, protocol.OrNil(b.URL)
	} else {
		out.Bidder.Name, out.Bidder.ClaimedName = "Not approved yet", ""
	}
	return out
}

// List lists open boards.
func (a *Attention) List(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.AttentionQuery) (protocol.Page[protocol.BoardEntry], error) {
	here := func() (protocol.Page[protocol.BoardEntry], error) {
		found, err := tx.AttentionBoards().List(ctx, in.Category, in.Size(), in.After)
		out := protocol.Page[protocol.BoardEntry]{Items: make([]protocol.BoardEntry, 0, len(found.Items)), Next: found.Next}
		for _, l := range found.Items {
			free := max(0, l.Terms.Slots-l.Used)
			out.Items = append(out.Items, protocol.BoardEntry{
				Handle: l.Handle, Name: l.Draft.Name, Headline: l.Draft.Headline, Floor: rupees(l.Terms.Floor), Slots: l.Terms.Slots,
				FreeSlots: &free, Accepting: l.Accepts(), Categories: l.Terms.CategoryPrices(), Test: l.Paid.Test,
				Page: a.page(l.Handle), Board: a.address(l.Handle), Untrusted: true,
			})
		}
		return out, err
	}
	query := func() (storage.RemoteQuery, error) { return storage.RemoteBoards(in.Category) }
	return storage.WithRemote(ctx, tx, in.Local, in.Paging, here, query, func(r *storage.RemoteAgent) protocol.BoardEntry {
		p, b, there := &r.Summary.Profile, r.Summary.Board, &Attention{Base: r.Base()}
		return protocol.BoardEntry{
			Handle: p.Handle, Name: p.Name, Headline: p.Headline, Floor: b.Floor, Slots: b.Slots, Accepting: b.Accepting,
			Categories: b.Categories, Test: b.Test, Page: there.page(p.Handle), Board: there.address(p.Handle),
			Elsewhere: r.Elsewhere(tx.Now), Untrusted: true,
		}
	})
}

// Check tells what a bid would get. It changes nothing.
func (a *Attention) Check(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.BidCheck) (protocol.BidOutlook, error) {
	_, b, err := openBoard(ctx, tx, in.Handle)
	if err != nil {
		return protocol.BidOutlook{}, err
	}
	paise := in.Paise()
	c, err := inTerms(b.Terms, paise, in.Category)
	if err != nil {
		return protocol.BidOutlook{}, err
	}
	v, err := tx.AttentionBoards().View(ctx, b, "")
	if err != nil {
		return protocol.BidOutlook{}, err
	}
	q := v.Quote(c.Floor, tx.Now)
	out := protocol.BidOutlook{
		Handle: b.Handle, Amount: rupees(paise), Category: protocol.OrNil(c.Name), Accepting: b.Accepts(), Of: b.Terms.Slots,
		Floor: rupees(c.Floor), SlotPrice: slotPrice(v, q, b.Accepts()), AsOf: tx.Now, Untrusted: true,
	}
	if paise >= c.Floor {
		out.Place = new(v.Place(paise))
	}
	out.WouldGetSlot = b.Accepts() && q.Basis != protocol.BasisNone && paise >= q.Price
	if out.WouldGetSlot && q.Displaces != nil {
		out.Displaces = new(rupees(q.Displaces.Paise))
	}
	return out, nil
}

// inTerms returns the category of a bid. The error is validation: the amount is above the board's
// highest, or there is no such category.
func inTerms(t protocol.BoardTerms, paise int64, category string) (protocol.CategoryFloor, error) {
	var faults []protocol.Fault
	c, ok := t.Category(strings.TrimSpace(category))
	if !ok {
		names := make([]string, 0, len(t.Categories))
		for _, c := range t.Categories {
			names = append(names, c.Name)
		}
		detail := "this board has no categories; leave it out"
		if len(names) > 0 {
			detail = "must be one of: " + strings.Join(names, ", ")
		}
		faults = append(faults, protocol.Fault{Pointer: "/category", Code: "not-allowed", Detail: detail})
	}
	if paise > t.MaxBid {
		faults = append(faults, protocol.Fault{Pointer: "/amount", Code: "out-of-range", Detail: "at most " + rupees(t.MaxBid).Amount + " rupees on this board"})
	}
	if len(faults) > 0 {
		return c, protocol.Invalid(faults...)
	}
	c.Floor = max(c.Floor, t.Floor)
	return c, nil
}

func rupees(paise int64) protocol.Money { return protocol.MoneyOf(protocol.Rupee, paise) }

func (a *Attention) page(handle string) string { return a.Base + "/@" + handle + "/board" }
func (a *Attention) address(handle string) string {
	return a.Base + "/api/public/agents/" + handle + "/attention"
}
