package archive

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// roomsRecord is rooms.json: what the owner has set in the rooms of the profile. It has no secrets: those
// of payment accounts and calendars stay with the node that keeps them.
type roomsRecord struct {
	Attention *attentionRecord `json:"attention,omitempty"`
	Payee     *payeeRecord     `json:"paymentAccount,omitempty"`
	Meetings  *meetingsRecord  `json:"meetings,omitempty"`
	Calendars []calendarRecord `json:"calendars,omitempty" maxItems:"5"`
	Orders    *tillRecord      `json:"orders,omitempty"`
}

// A tillRecord is how a shop takes orders.
type tillRecord struct {
	Draft     protocol.TillDraft `json:"draft" doc:"An import closes it."`
	UpdatedAt time.Time          `json:"updatedAt"`
}

type attentionRecord struct {
	Open      bool                    `json:"open" doc:"An import closes it."`
	Draft     protocol.AttentionDraft `json:"draft"`
	UpdatedAt time.Time               `json:"updatedAt"`
}

// A payeeRecord is the account that bids and orders are paid to. No import sets it: where money goes is decided by
// its owner, not by a file.
type payeeRecord struct {
	Provider   protocol.PayName `json:"provider" enum:"upi,razorpay,sandbox"`
	VPA        string           `json:"vpa,omitempty" maxLength:"255"`
	PayeeName  string           `json:"payeeName,omitempty" maxLength:"80"`
	KeyID      string           `json:"keyId,omitempty" maxLength:"80"`
	LegalName  string           `json:"legalName,omitempty" maxLength:"120"`
	Address    string           `json:"address,omitempty" maxLength:"400"`
	GSTIN      string           `json:"gstin,omitempty" maxLength:"15"`
	GSTPercent protocol.Decimal `json:"gstPercent,omitempty" decimal:"true"`
}

type meetingsRecord struct {
	Open      bool                  `json:"open" doc:"An import closes them."`
	Rules     protocol.MeetingRules `json:"rules"`
	UpdatedAt time.Time             `json:"updatedAt"`
}

type calendarRecord struct {
	Address   string        `json:"address" format:"uri" maxLength:"500"`
	User      string        `json:"user" line:"true" minLength:"1" maxLength:"200"`
	Calendars []foundRecord `json:"calendars" maxItems:"100" doc:"What the server had at the last check."`
	Reads     []string      `json:"reads" maxItems:"10" uniqueItems:"true" doc:"Addresses among calendars."`
	Writes    string        `json:"writes,omitempty" maxLength:"2000" doc:"Address among calendars."`
	CreatedAt time.Time     `json:"createdAt"`
}

type foundRecord struct {
	URL  string `json:"url" format:"uri" maxLength:"2000"`
	Name string `json:"name" maxLength:"200"`
}

// Check returns the faults that the operations find that write these settings.
func (r roomsRecord) Check() (faults []protocol.Fault) {
	add := func(at string, found []protocol.Fault) {
		for _, f := range found {
			f.Pointer = at + f.Pointer
			faults = append(faults, f)
		}
	}
	if r.Attention != nil {
		if r.Attention.Draft.Handle != "" {
			add("/attention/draft", []protocol.Fault{{Pointer: "/handle", Code: "not-allowed", Detail: "is that of the archive, and not written here"}})
		}
		add("/attention/draft", r.Attention.Draft.Check())
	}
	if r.Orders != nil {
		if r.Orders.Draft.Handle != "" {
			add("/orders/draft", []protocol.Fault{{Pointer: "/handle", Code: "not-allowed", Detail: "is that of the archive, and not written here"}})
		}
		add("/orders/draft", r.Orders.Draft.Check())
	}
	if r.Meetings != nil {
		add("/meetings/rules", r.Meetings.Rules.Check())
	}
	for _, c := range r.Calendars {
		add("/calendars", protocol.CalendarLogin{User: c.User}.Check())
	}
	return faults
}

// rooms writes the settings of the profile's rooms. Without any there is no member: older nodes refuse
// members that they do not know.
func (e *exporting) rooms(ctx context.Context, p *storage.StoredProfile) error {
	var r roomsRecord
	if b, err := e.tx.AttentionBoards().ByHandle(ctx, e.handle); err == nil {
		r.Attention = &attentionRecord{Open: b.Open, Draft: draftOf(b.Terms), UpdatedAt: b.UpdatedAt}
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if t, err := e.tx.Tills().ByHandle(ctx, e.handle); err == nil {
		r.Orders = &tillRecord{Draft: t.Terms, UpdatedAt: t.UpdatedAt}
		r.Orders.Draft.Handle = ""
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	accounts, err := e.tx.PaymentAccounts().OfProfile(ctx, e.handle)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(accounts, func(a storage.PaymentAccount) bool { return a.RetiredAt == nil }); at >= 0 {
		a := accounts[at]
		r.Payee = &payeeRecord{Provider: a.Provider, VPA: a.VPA, PayeeName: a.PayeeName, KeyID: a.KeyID, LegalName: a.LegalName, Address: a.Address,
			GSTIN: a.GSTIN, GSTPercent: protocol.Decimal(a.GSTPercent)}
	}
	s, err := e.tx.Meetings().Settings(ctx, p)
	if err != nil {
		return err
	}
	if !s.UpdatedAt.IsZero() {
		r.Meetings = &meetingsRecord{Open: s.Open, Rules: s.Rules, UpdatedAt: s.UpdatedAt}
	}
	calendars, err := e.tx.Calendars().OfProfile(ctx, e.handle)
	if err != nil {
		return err
	}
	for _, c := range calendars {
		one := calendarRecord{Address: c.Address, User: c.User, Calendars: []foundRecord{}, Reads: append([]string{}, c.Reads...), Writes: c.Writes,
			CreatedAt: c.CreatedAt}
		for _, f := range c.Found {
			one.Calendars = append(one.Calendars, foundRecord(f))
		}
		r.Calendars = append(r.Calendars, one)
	}
	if r.Attention == nil && r.Payee == nil && r.Meetings == nil && r.Calendars == nil && r.Orders == nil {
		return nil
	}
	return e.one(roomsFile, r)
}

// draftOf returns terms as their owner would write them, with every default.
func draftOf(t protocol.BoardTerms) protocol.AttentionDraft {
	rupees := func(paise int64) protocol.Decimal {
		return protocol.Decimal(protocol.MoneyOf(protocol.Rupee, paise).Amount)
	}
	d := protocol.AttentionDraft{
		Rules: t.Rules, Floor: rupees(t.Floor), Step: rupees(t.Step), MaxBid: rupees(t.MaxBid), Slots: t.Slots, SlotDays: t.SlotDays,
		ProtectHours: &t.ProtectHours, FullRefundHours: t.FullRefundHours, RefundIfNoReply: t.RefundIfNoReply, ClaimHours: t.ClaimHours,
		Accepting: &t.Accepting, AutoApprove: &t.AutoApprove,
	}
	if t.RespondWithinDays > 0 {
		d.RespondWithinDays = &t.RespondWithinDays
	}
	for _, c := range t.Categories {
		d.Categories = append(d.Categories, protocol.BoardCategory{Name: c.Name, Floor: rupees(c.Floor)})
	}
	return d
}

// rooms reads rooms.json.
func (im *importing) rooms(r record) (in roomsRecord, err error) {
	if err := im.decode(r, &in); err != nil {
		return in, err
	}
	switch person := im.profile.Draft.Kind == protocol.Person; {
	case person && in.Orders != nil:
		return in, refused("%s: only a business takes orders", r.file)
	case !person && (in.Attention != nil || in.Meetings != nil || in.Calendars != nil):
		return in, refused("%s: only a person has an attention board, meetings or calendars", r.file)
	}
	return in, nil
}

// storeRooms adds the settings that the profile here lacks. Board and meetings are closed: their owner
// opens them, after a look at what came.
func (im *importing) storeRooms(ctx context.Context, tx *storage.Tx, in *roomsRecord) error {
	if in.Attention != nil {
		if err := im.storeBoard(ctx, tx, in.Attention); err != nil {
			return err
		}
	}
	if p := in.Payee; p != nil {
		im.note("the payment account was left out (%s %s): where money goes is not taken from a file; put_payment_account sets it here", p.Provider,
			protocol.OneLine(cmp.Or(p.VPA, p.KeyID)))
	}
	if in.Orders != nil {
		if err := im.storeTill(ctx, tx, in.Orders.Draft); err != nil {
			return err
		}
	}
	if in.Meetings != nil {
		if err := im.storeMeetingRules(ctx, tx, in.Meetings); err != nil {
			return err
		}
	}
	for i := range in.Calendars {
		if err := im.storeCalendar(ctx, tx, &in.Calendars[i]); err != nil {
			return err
		}
	}
	return nil
}

// storeTill stores how a shop takes orders where that is not said here yet.
func (im *importing) storeTill(ctx context.Context, tx *storage.Tx, in protocol.TillDraft) error {
	switch _, err := tx.Tills().ByHandle(ctx, im.handle); {
	case err == nil && im.report.Profile == replaced:
		im.note("the shop here keeps its terms of orders")
		return nil
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	in.Open, in.Handle = false, im.handle
	im.note("the shop takes no orders here yet: put_till opens it, once it has a payment account, and put_stock counts its pieces")
	return tx.Tills().Put(ctx, &storage.Till{Handle: im.handle, Terms: in})
}

// storeBoard stores a board where there is none: one that is here has bids that were made under its rules.
func (im *importing) storeBoard(ctx context.Context, tx *storage.Tx, in *attentionRecord) error {
	switch _, err := tx.AttentionBoards().ByHandle(ctx, im.handle); {
	case err == nil && im.report.Profile == replaced:
		im.note("the attention board here keeps its rules")
		return nil
	case err == nil:
		return nil
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	terms, _ := in.Draft.Terms() // decode has refused faults
	im.note("the attention board is closed here: put_attention_board opens it")
	return tx.AttentionBoards().Put(ctx, &storage.AttentionBoard{Handle: im.handle, Terms: terms})
}

func (im *importing) storeMeetingRules(ctx context.Context, tx *storage.Tx, in *meetingsRecord) error {
	p, err := tx.Profiles().ForUpdate(ctx, im.handle)
	if err != nil {
		return err
	}
	here, err := tx.Meetings().Settings(ctx, p)
	if err != nil || im.report.Profile == kept && (here.Open || !here.UpdatedAt.IsZero()) {
		return err
	}
	im.note("meeting requests are closed here: put_meeting_settings opens them")
	return tx.Meetings().PutSettings(ctx, &storage.MeetingSettings{Handle: im.handle, Rules: in.Rules})
}

// storeCalendar stores an account at a calendar server without its password. The choice of calendars is
// kept for the addresses of that server only: the node sends the password, once it has it, to no other.
func (im *importing) storeCalendar(ctx context.Context, tx *storage.Tx, in *calendarRecord) error {
	if why := protocol.CalendarFault(in.Address, im.Private); why != "" {
		im.note("a calendar server was left out: its address %s", why)
		return nil
	}
	all, err := tx.Calendars().OfProfile(ctx, im.handle)
	if err != nil || slices.ContainsFunc(all, func(o storage.CalendarAccount) bool { return o.Address == in.Address && o.User == in.User }) {
		return err
	}
	if len(all) >= protocol.MaxCalendarAccounts {
		im.note("calendar servers were left out: a profile has at most %d", protocol.MaxCalendarAccounts)
		return nil
	}
	a := &storage.CalendarAccount{Handle: im.handle, Sealed: []byte{}, CalendarDoc: storage.CalendarDoc{
		Address: in.Address, User: in.User, Failed: protocol.CalendarNoPassword, FailedAt: tx.Now,
	}}
	for _, f := range in.Calendars {
		if !sameServer(f.URL, in.Address) {
			continue
		}
		a.Found = append(a.Found, protocol.FoundCalendar(f))
		if slices.Contains(in.Reads, f.URL) {
			a.Reads = append(a.Reads, f.URL)
		}
		if f.URL == in.Writes && !slices.ContainsFunc(all, func(o storage.CalendarAccount) bool { return o.Writes != "" }) {
			a.Writes = f.URL
		}
	}
	im.note("calendars are read and written again after their passwords are given here (connect_calendar)")
	return tx.Calendars().Put(ctx, a)
}

// sameServer reports whether an address is of the server of a calendar account.
func sameServer(address, account string) bool {
	a, err := url.Parse(address)
	b, other := url.Parse(account)
	return err == nil && other == nil && a.User == nil && a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}
