package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// mostShops is of how many shops the account's index shows the hours.
const mostShops = 10

// waitPages are where what waits is decided, and its words.
var waitPages = map[protocol.WaitKind][2]string{
	protocol.PaymentsWait: {attentionPath, english("%d payments to confirm")},
	protocol.DisputesWait: {attentionPath, english("%d payments that payers say they made")},
	protocol.RefundsWait:  {attentionPath, english("%d refunds to make")},
	protocol.OrdersWait:   {ordersPath, english("%d orders to go on with")},
	protocol.MeetingsWait: {meetingsPath, english("%d meeting requests to answer")},
	protocol.MessagesWait: {"/account/threads", english("%d conversations with new messages")},
}

// readWaits reads what waits for the owner, and the hours of the shops.
func (a *account) readWaits(s *Web, r *http.Request) error {
	for _, p := range a.Account.Profiles[:min(len(a.Account.Profiles), mostShops)] {
		if p.Kind == protocol.Business {
			if err := a.readToday(s, r, p); err != nil {
				return err
			}
		}
	}
	return a.ask(s, r, protocol.ListWaiting.Operation, map[string]any{})
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
	for _, x := range answer(a, protocol.ListWaiting).Items {
		page, key := waitPages[x.What][0], waitPages[x.What][1]
		row := all{element{openLink("", accountPage{path: page}.to(x.Handle)), "</a> ", key, []any{x.Count}}, in(`span class="of" translate="no"`, "@"+x.Handle)}
		if x.Until != nil {
			row = append(row, space, sayIn(`span class="hint"`, "Before %s", stamp(ctx, *x.Until)))
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
