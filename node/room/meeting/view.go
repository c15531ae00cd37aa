package meeting

import (
	"fmt"

	"stoa/protocol"
	"stoa/storage"
)

// stateNow returns the state of a request, also in the moments before the job ends one whose time is
// over.
func stateNow(tx *storage.Tx, r *storage.StoredMeeting) protocol.MeetingState {
	if r.DueAt.IsZero() || r.DueAt.After(tx.Now) {
		return r.State
	}
	switch r.State {
	case protocol.MeetingUnconfirmed, protocol.MeetingSubmitted, protocol.MeetingProposed:
		return protocol.MeetingExpired
	case protocol.MeetingApproved:
		return protocol.MeetingDone
	}
	return r.State
}

// view returns a request as its requester sees it.
func (m *Meeting) view(r *storage.StoredMeeting) protocol.MeetingRequest {
	out := protocol.MeetingRequest{
		ID: r.ID, Handle: r.Handle, State: r.State, Requester: r.Name, Purpose: r.Purpose, DurationMin: int(r.EndsAt.Sub(r.StartsAt).Minutes()),
		StartsAt: r.StartsAt, EndsAt: r.EndsAt, TimeZone: protocol.OrNil(r.TimeZone), Proposals: append([]protocol.MeetingTime{}, r.Proposals...),
		Sequence: r.Sequence, Answer: protocol.OrNil(r.Answer), CreatedAt: r.AskedAt, History: r.History, Untrusted: true,
	}
	if r.State.Waits() {
		out.AnswerBy = &r.DueAt
	}
	if r.State == protocol.MeetingApproved || r.State == protocol.MeetingDone {
		out.Location = protocol.OrNil(r.Location)
	}
	m.addTo(&out, r)
	out.Note = advice(r)
	return out
}

// advice tells a requester what to do next.
func advice(r *storage.StoredMeeting) string {
	switch r.State {
	case protocol.MeetingUnconfirmed:
		return "A mail goes to " + masked(r.Mail) + ", if none did lately; the link in either shows all that waits for the mailbox. Whoever reads it opens " +
			"it within 24 hours; only then @" + r.Handle + " sees the request."
	case protocol.MeetingSubmitted:
		return "@" + r.Handle + " decides. Nothing is on a calendar before."
	case protocol.MeetingProposed:
		return "@" + r.Handle + " proposes other times. Take one with pick_meeting_time, or cancel_meeting."
	case protocol.MeetingApproved:
		if !r.Confirmed {
			return "@" + r.Handle + " has approved. This node sends no invite; write down the time."
		}
		return "@" + r.Handle + " has approved. Tell them with cancel_meeting if you cannot come."
	case protocol.MeetingExpired:
		if r.GaveWay {
			return "It gave way to newer requests before its mailbox was confirmed, because too many waited. Ask again, best signed."
		}
		return "Nobody decided in time. Ask again for another time."
	}
	return ""
}

// masked returns enough of an address for its owner to know it.
func masked(mail string) string {
	if mail == "" {
		return "the mailbox"
	}
	return fmt.Sprintf("%.1s…@…", mail)
}
