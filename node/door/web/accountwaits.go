package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// mostWaits is of how many profiles the account's index says what waits.
const mostWaits = 10

// A waiting is something that waits for the owner of a profile.
type waiting struct {
	page   string // where it is decided
	handle string
	key    string
	args   []any      // of the key
	until  *time.Time // the first deadline, nil for none
}

// readWaits reads what waits for the owner, money first, and the hours of the shops.
func (a *account) readWaits(s *Web, r *http.Request) error {
	for _, p := range a.Account.Profiles[:min(len(a.Account.Profiles), mostWaits)] {
		var err error
		if p.Kind == protocol.Business {
			err = a.readToday(s, r, p)
		} else {
			err = a.readPersonWaits(s, r, p.Handle)
		}
		if err != nil {
			return err
		}
		switch {
		case p.New >= 100:
			a.Waits = append(a.Waits, waiting{"/account/threads", p.Handle, english("100 and more conversations with new messages"), nil, nil})
		case p.New > 0:
			a.Waits = append(a.Waits, waiting{"/account/threads", p.Handle, english("%d conversations with new messages"), []any{p.New}, nil})
		}
	}
	slices.SortStableFunc(a.Waits, func(x, y waiting) int { // what has a deadline first
		switch {
		case x.until != nil && y.until != nil:
			return x.until.Compare(*y.until)
		case x.until != nil:
			return -1
		case y.until != nil:
			return 1
		}
		return 0
	})
	return nil
}

func (a *account) readPersonWaits(s *Web, r *http.Request, handle string) error {
	var claimed, disputed protocol.Page[protocol.OwnBid]
	var refunds protocol.Page[protocol.OwnRefund]
	var asked protocol.Page[protocol.OwnMeeting]
	for _, x := range []struct {
		op   *protocol.Operation
		args map[string]any
		into any
	}{
		{protocol.ListBids.Operation, map[string]any{"state": protocol.BidClaimed}, &claimed},
		{protocol.ListBids.Operation, map[string]any{"disputed": true}, &disputed},
		{protocol.ListRefunds.Operation, map[string]any{}, &refunds},
		{protocol.ListMeetings.Operation, map[string]any{"state": protocol.MeetingSubmitted}, &asked},
	} {
		x.args["handle"], x.args["limit"] = handle, protocol.MaxLimit
		if err := s.invokeSignedIn(r, x.op, x.args, x.into); err != nil {
			return err
		}
	}
	var until *time.Time
	paid := append(claimed.Items, disputed.Items...)
	for _, b := range paid {
		if at := b.HoldExpiresAt; at != nil && (until == nil || at.Before(*until)) {
			until = at
		}
	}
	byHand := 0
	for _, x := range refunds.Items {
		if x.State == "manual" || x.State == "failed" {
			byHand++
		}
	}
	for _, x := range []struct {
		page, key string
		n         int
		until     *time.Time
	}{
		{attentionPath, english("%d payments to confirm"), len(paid), until},
		{attentionPath, english("%d refunds to make"), byHand, nil},
		{meetingsPath, english("%d meeting requests to answer"), len(asked.Items), nil},
	} {
		if x.n > 0 {
			a.Waits = append(a.Waits, waiting{x.page, handle, x.key, []any{x.n}, x.until})
		}
	}
	return nil
}

// readToday reads the hours of a shop; one that is not shown has none.
func (a *account) readToday(s *Web, r *http.Request, p protocol.HeldProfile) error {
	m, err := read(s, r, protocol.GetMerchant, protocol.MerchantInfoQuery{HandleInput: protocol.HandleInput{Handle: p.Handle}, Limit: 1})
	if code := protocol.CodeOf(err); err != nil && (code == protocol.NotFound || code == protocol.Gone) {
		return nil
	}
	a.Today = append(a.Today, m)
	return err
}

// hoursOn returns the hours of a shop on the day of now in its zone: those of exceptions, otherwise those of the week.
func hoursOn(ctx context.Context, m protocol.Merchant, now time.Time) string {
	now = now.In(zoneNamed(deref(m.Timezone)))
	date := now.Format(time.DateOnly)
	var open []string
	for _, e := range m.ExceptionHours {
		if e.ValidFrom <= date && date <= e.ValidThrough {
			open = append(open, exceptional(ctx, []protocol.ExceptionHours{e})[0].Hours)
		}
	}
	if days := week(ctx, m.Hours); len(open) == 0 && days != nil {
		return days[(int(now.Weekday())+6)%7].Hours
	}
	return strings.Join(open, ", ")
}

// waits begin the index: what waits for the owner, then whether the shops are open today.
func waits(ctx context.Context, a *account) templ.Component {
	var list, shops all
	for _, x := range a.Waits {
		row := all{element{openLink("", accountPage{path: x.page}.to(x.handle)), "</a> ", x.key, x.args}, in(`span class="of" translate="no"`, "@"+x.handle)}
		if x.until != nil {
			row = append(row, space, sayIn(`span class="hint"`, "Before %s", indianClock(ctx, *x.until)))
		}
		list = append(list, inside("li", row...))
	}
	for _, m := range a.Today {
		hours := cmp.Or(hoursOn(ctx, m, time.Now()), tr(ctx, "no hours yet"))
		shops = append(shops, inside("li", linkTo(accountPage{path: hoursPath}.to(m.Handle), m.Name), space, put(hours), space, openness(m)))
	}
	return all{
		titled("waits", "Waiting for you", when(len(list) == 0, quiet("Nothing waits for you.")), when(len(list) > 0, inside(`ul class="plain"`, list...))),
		when(len(shops) > 0, titled("today", "Today", inside(`ul class="plain"`, shops...))),
	}
}
