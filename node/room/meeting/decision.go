package meeting

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"strconv"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// The links of notices to a person, which decide on a request. A ticket is its kind, the id of the request
// and a MAC of both, of how often the request has changed, and of the address that the notice went to, of
// mail or of a webhook. So it needs no row: it ends when it was used, when anything else changes the
// request, and when the person has another address.

const ofPerson rune = 'p' // decides, for the person that is asked

// decisions are what a link can do with a request that waits for the person.
var decisions = []protocol.MeetingDecides{protocol.DecideApprove, protocol.DecideDecline}

// decisionTicket returns the ticket of a notice to an address about a request that has changed so often.
func (m *Meeting) decisionTicket(r *storage.StoredMeeting, moves int, to string) string {
	id := strings.TrimPrefix(r.ID, protocol.MeetingID+"_")
	return protocol.ReadTokenPrefix + string(ofPerson) + id + m.mac(string(ofPerson), r.ID, strconv.Itoa(moves), to)
}

// LinkFor returns the link by which the reader of a notice to an address decides on a request; nil when it
// does not wait for the person.
func (m *Meeting) LinkFor(ctx context.Context, tx *storage.Tx, id, handle, to string) (*protocol.NoticeLink, error) {
	r, err := tx.Meetings().ByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil || r.Handle != handle || stateNow(tx, r) != protocol.MeetingSubmitted {
		return nil, err
	}
	ticket := m.decisionTicket(r, r.Moves, to)
	link := &protocol.NoticeLink{URL: m.Base + "/meeting-decision?ticket=" + ticket, API: m.Base + protocol.UseDecisionLink.HTTP.Path, Ticket: ticket}
	for _, do := range decisions {
		link.Do = append(link.Do, string(do))
	}
	return link, nil
}

var errDecision = protocol.Errorf(protocol.Gone, "this link is not valid, or notices go to another address now; sign in to see the request")

// ofDecision returns the request of a ticket, which waits for the person, whose profile's row is locked.
func (m *Meeting) ofDecision(ctx context.Context, tx *storage.Tx, c protocol.Caller, ticket string) (*storage.StoredMeeting, error) {
	ticket = cmp.Or(ticket, c.ReadToken)
	if ticket == "" {
		return nil, protocol.Errorf(protocol.Unauthorized, "send the ticket of the link as Authorization: Bearer")
	}
	rest, ok := strings.CutPrefix(ticket, protocol.ReadTokenPrefix+string(ofPerson))
	if !ok || len(rest) < idLength {
		return nil, errDecision
	}
	r, _, err := locked(ctx, tx, protocol.MeetingID+"_"+rest[:idLength])
	if err != nil {
		return nil, storage.IfMissing(err, errDecision)
	}
	to, err := tx.Profiles().NotifySettings(ctx, r.Handle)
	if err != nil {
		return nil, err
	}
	switch n := m.sentAfter(r, ticket, to); {
	case n == 0:
		return nil, errDecision
	case n != r.Moves || stateNow(tx, r) != protocol.MeetingSubmitted:
		return nil, protocol.Errorf(protocol.Gone, "this link has ended: the request is %s since %s", strings.ReplaceAll(string(stateNow(tx, r)), "_", " "),
			r.MovedAt.UTC().Format("2 Jan 2006, 15:04 UTC"))
	}
	return r, nil
}

// sentAfter returns after how many changes of a request a notice with a ticket was sent to an address that
// the person still has; 0 for none.
func (m *Meeting) sentAfter(r *storage.StoredMeeting, ticket string, to storage.NotifySettings) (moves int) {
	if !to.Links {
		return 0
	}
	addresses := []string{to.Webhook}
	if to.Confirmed {
		addresses = append(addresses, to.Mail)
	}
	for n := 1; n <= r.Moves; n++ {
		for _, address := range addresses {
			if address != "" && subtle.ConstantTimeCompare([]byte(ticket), []byte(m.decisionTicket(r, n, address))) == 1 {
				moves = n
			}
		}
	}
	return moves
}

// ReadDecisionLink returns what a link would do.
func (m *Meeting) ReadDecisionLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.DecisionLinkInput) (protocol.DecisionLink, error) {
	r, err := m.ofDecision(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.DecisionLink{}, err
	}
	view, err := m.ownView(ctx, tx, r)
	return protocol.DecisionLink{Do: decisions, Request: view, Untrusted: true}, err
}

// UseDecisionLink decides, as the person.
func (m *Meeting) UseDecisionLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.DecisionLinkUse) (protocol.OwnMeeting, error) {
	r, err := m.ofDecision(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.OwnMeeting{}, err
	}
	person := protocol.Caller{Standing: protocol.Session, Handle: r.Handle, Handles: []string{r.Handle}, Network: c.Network}
	decision := protocol.MeetingDecision{OwnMeetingRef: protocol.OwnMeetingRef{ID: r.ID}}
	if in.Do == protocol.DecideApprove {
		return m.Approve(ctx, tx, person, decision)
	}
	return m.Decline(ctx, tx, person, protocol.MeetingRefusal{MeetingDecision: decision})
}
