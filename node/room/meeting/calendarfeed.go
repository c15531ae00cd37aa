package meeting

import (
	"context"
	"crypto/subtle"
	"net/url"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/storage"
)

// What programs read of meetings as iCalendar: the feed of a person, whose address has a secret, and one
// meeting, for its requester.

const (
	feedPath  = "/feeds/cal/"
	eventPath = "/feeds/meeting/"
	feedFor   = 30 * 24 * time.Hour // a meeting is in the feed so long after its end, or after it was cancelled

	ofEvent rune = 'e' // the kind of the ticket that reads one meeting, as long as the meeting is known
)

// MakeFeed makes the address of a person's feed, in place of a former one.
func (m *Meeting) MakeFeed(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.MeetingFeed, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.MeetingFeed{}, err
	}
	secret := protocol.NewReadToken()
	out := protocol.MeetingFeed{Handle: p.Draft.Handle, URL: m.Base + feedPath + secret + ".ics", MadeAt: tx.Now}
	return out, tx.Meetings().PutFeed(ctx, p.Draft.Handle, protocol.SecretHash(secret))
}

// DeleteFeed ends the feed of a person.
func (m *Meeting) DeleteFeed(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.None, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Meetings().DropFeed(ctx, p.Draft.Handle)
}

var errFeed = protocol.Errorf(protocol.NotFound, "there is no calendar at this address; its owner may have made another")

// Feed returns the feed whose address has a secret.
func (m *Meeting) Feed(ctx context.Context, tx *storage.Tx, secret string) ([]byte, error) {
	handle, err := tx.Meetings().FeedOf(ctx, protocol.SecretHash(secret))
	if err != nil {
		return nil, storage.IfMissing(err, errFeed)
	}
	since := tx.Now.Add(-feedFor)
	all, err := tx.Meetings().Agreed(ctx, handle, since)
	if err != nil {
		return nil, err
	}
	events := []ics.Event{}
	for i := range all {
		if agreed(all[i].State) || all[i].MovedAt.After(since) {
			events = append(events, m.ownEvent(&all[i]))
		}
	}
	return ics.Feed("Meetings of @"+handle, events)
}

// ICS returns a meeting for the calendar of its requester.
func (m *Meeting) ICS(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingInput) (string, error) {
	r, err := m.asked(ctx, tx, c, in)
	if err != nil {
		return "", err
	}
	file, err := m.event(r)
	return string(file), err
}

// Event returns the meeting that a ticket reads.
func (m *Meeting) Event(ctx context.Context, tx *storage.Tx, ticket string) ([]byte, error) {
	rest, ok := strings.CutPrefix(ticket, protocol.ReadTokenPrefix+string(ofEvent))
	if !ok || len(rest) < idLength {
		return nil, errFeed
	}
	r, err := tx.Meetings().ByID(ctx, protocol.MeetingID+"_"+rest[:idLength])
	if err != nil || subtle.ConstantTimeCompare([]byte(ticket), []byte(m.eventTicket(r))) != 1 {
		return nil, storage.Missing(err, errFeed)
	}
	return m.event(r)
}

func (m *Meeting) eventTicket(r *storage.StoredMeeting) string {
	return protocol.ReadTokenPrefix + string(ofEvent) + strings.TrimPrefix(r.ID, protocol.MeetingID+"_") + m.mac(string(ofEvent), r.ID)
}

// event returns a meeting as a file for the requester's calendar.
func (m *Meeting) event(r *storage.StoredMeeting) ([]byte, error) {
	if !agreed(r.State) && r.State != protocol.MeetingCancelled {
		return nil, protocol.Errorf(protocol.NotFound, "the meeting is %s; there is a file once it is approved", r.State)
	}
	return m.theirEvent(r).Stored()
}

// theirEvent returns a meeting as its requester's calendar has it, without anything that the requester
// wrote.
func (m *Meeting) theirEvent(r *storage.StoredMeeting) ics.Event {
	return ics.Event{
		ID: r.ID, Node: m.host(), Summary: "Meeting with @" + r.Handle, Location: r.Location, URL: m.Base + "/meetings/" + r.ID,
		Description: "With @" + r.Handle + " at " + m.host() + ". Its page, where it can be cancelled: " + m.Base + "/meetings/" + r.ID,
		Start:       r.StartsAt, End: r.EndsAt, Stamp: r.MovedAt, Sequence: r.Sequence, Cancelled: r.State == protocol.MeetingCancelled, Alarm: 15 * time.Minute,
	}
}

// addTo writes into the view of a meeting that was approved how it comes on a calendar.
func (m *Meeting) addTo(out *protocol.MeetingRequest, r *storage.StoredMeeting) {
	if !agreed(r.State) && r.State != protocol.MeetingCancelled {
		return
	}
	file := m.Base + eventPath + m.eventTicket(r) + ".ics"
	e := m.theirEvent(r)
	if out.ICS = &file; r.State != protocol.MeetingApproved {
		return
	}
	const compact = "20060102T150405Z"
	start, end := e.Start.UTC(), e.End.UTC()
	outlook := query("path", "/calendar/action/compose", "rru", "addevent", "subject", e.Summary, "startdt", start.Format(time.RFC3339),
		"enddt", end.Format(time.RFC3339), "body", e.Description, "location", e.Location)
	out.AddToCalendar = &protocol.AddToCalendar{
		Google: "https://calendar.google.com/calendar/render?" + query("action", "TEMPLATE", "text", e.Summary,
			"dates", start.Format(compact)+"/"+end.Format(compact), "details", e.Description, "location", e.Location),
		Outlook:   "https://outlook.live.com/calendar/0/deeplink/compose?" + outlook,
		Office365: "https://outlook.office.com/calendar/0/deeplink/compose?" + outlook,
	}
}

// query returns names and values as a query, without those that are empty. Outlook shows a plus sign as it
// is, so that a space is %20.
func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return strings.ReplaceAll(values.Encode(), "+", "%20")
}
