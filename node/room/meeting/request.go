package meeting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/schedule"
	"stoa/storage"
)

// A wish is a request that passed every check which needs no count.
type wish struct {
	person   *storage.StoredProfile
	settings storage.MeetingSettings
	at       protocol.MeetingTime
}

// Ask stores a new request. Where the node sends mail, its mailbox is confirmed first.
func (m *Meeting) Ask(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewMeeting) (protocol.MeetingReceipt, error) {
	if in.CallbackURL != "" {
		if why := protocol.CallbackFault(in.CallbackURL, m.Private); why != "" {
			return protocol.MeetingReceipt{}, protocol.Invalid(protocol.Fault{Pointer: "/callbackUrl", Code: "callback-address", Detail: why})
		}
	}
	w, err := m.check(ctx, tx, in)
	if err != nil {
		return protocol.MeetingReceipt{}, err
	}
	mail, fault := protocol.PublicMail(in.Email, m.host(), m.Private)
	if fault != "" {
		return protocol.MeetingReceipt{}, protocol.Invalid(protocol.Fault{Pointer: "/email", Code: "not-an-address", Detail: fault})
	}
	mailbox := storage.MailboxOf(m.LinkKey, mail)
	if err := m.admit(ctx, tx, c, w, mail, mailbox); err != nil {
		return protocol.MeetingReceipt{}, err
	}
	token := protocol.NewReadToken()
	r := &storage.StoredMeeting{
		ID: protocol.NewID(protocol.MeetingID, tx.Now), Handle: w.settings.Handle, State: protocol.MeetingSubmitted, Shown: true,
		StartsAt: w.at.StartsAt, EndsAt: w.at.EndsAt, Requester: c.ID(), Mailbox: mailbox, TokenHash: protocol.SecretHash(token), AskedAt: tx.Now,
		Known: c.Known(),
		MeetingDoc: storage.MeetingDoc{
			Author: c.Author(m.Base, in.Requester, tx.Now), Name: in.Requester, Mail: mail, Purpose: in.Purpose, TimeZone: in.TimeZone,
			Callback: in.CallbackURL, Visitor: []byte(c.Visitor), Sent: protocol.MeetingMailNone,
			Language: in.Language,
		},
	}
	if r.Author.Verified {
		r.By = c.Handle
	}
	if m.Mail() != nil {
		r.State, r.Shown, r.Sent = protocol.MeetingUnconfirmed, false, protocol.MeetingMailQueued
		if err := enqueue(ctx, tx, storage.MeetingMailJob, mailLane, subject{ID: r.ID, N: 1}, tx.Now); err != nil {
			return protocol.MeetingReceipt{}, err
		}
	}
	r.DueAt, r.MailUntil = dueAt(tx.Now, r), r.EndsAt.Add(protocol.MeetingMailKept)
	if err := tx.Meetings().Insert(ctx, r); err != nil {
		return protocol.MeetingReceipt{}, err
	}
	if err := m.follow(ctx, tx, r, change{to: r.State}); err != nil {
		return protocol.MeetingReceipt{}, err
	}
	return protocol.MeetingReceipt{Request: m.view(r), StatusURL: m.Base + "/api/public/meetings/" + r.ID, StatusToken: token}, nil
}

// Ahead returns the public reason why no request like this can be made, nil otherwise.
func (m *Meeting) Ahead(ctx context.Context, tx *storage.Tx, in protocol.NewMeeting) error {
	w, err := m.check(ctx, tx, in)
	if err == nil && w.settings.Rules.VerifiedDomain { // who needs a proof does not sign
		err = errDomain(in.Handle)
	}
	return err
}

func errDomain(handle string) error {
	return protocol.Errorf(protocol.ContactRefused,
		"@%s takes requests only of agents that sign with a key in the key directory at the domain of the mail address", handle)
}

// check checks what a request asks for: the person, the length and the time.
func (m *Meeting) check(ctx context.Context, tx *storage.Tx, in protocol.NewMeeting) (w wish, err error) {
	if w.person, err = person(ctx, tx, in.Handle); err != nil {
		return w, err
	}
	if w.settings, err = tx.Meetings().Settings(ctx, w.person); err != nil {
		return w, err
	}
	if !w.settings.Open {
		return w, protocol.Errorf(protocol.Conflict, "@%s takes no meeting requests now", in.Handle)
	}
	rules := w.settings.Rules.Complete()
	var faults []protocol.Fault
	at, fault := schedule.Parse(in.StartsAt, in.TimeZone)
	if fault != nil {
		faults = append(faults, *fault)
	}
	if !slices.Contains(rules.Durations, in.DurationMin) {
		faults = append(faults, protocol.Fault{Pointer: "/durationMin", Code: "not-allowed", Detail: lengths(rules)})
	}
	if len(faults) > 0 {
		return w, protocol.Invalid(faults...)
	}
	length := time.Duration(in.DurationMin) * time.Minute
	w.at = protocol.MeetingTime{StartsAt: at, EndsAt: at.Add(length)}
	warnings, err := m.judge(ctx, tx, in.Handle, rules, w.at, "")
	if err == nil && rules.OutsideHours == "refuse" && len(warnings) > 0 { // one code for all, which tells nothing of the calendar
		err = protocol.Invalid(protocol.Fault{Pointer: "/startsAt", Code: "not-open", Detail: "is not an open time of @" + in.Handle})
	}
	return w, err
}

// judge returns the warnings about a time. The error is validation when it is too soon or too far ahead.
func (m *Meeting) judge(ctx context.Context, tx *storage.Tx, handle string, rules protocol.MeetingRules, t protocol.MeetingTime,
	except string) ([]protocol.MeetingWarning, error) {
	taken, _, err := takenBy(ctx, tx, handle, rules, t.StartsAt, t.EndsAt, except)
	if err != nil {
		return nil, err
	}
	v, err := scheduleOf(rules).Judge(t.StartsAt, t.EndsAt.Sub(t.StartsAt), tx.Now, taken)
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(v.Refusals, schedule.TooSoon):
		return nil, startFault("must be at least %d minutes ahead", rules.MinNoticeMin)
	case slices.Contains(v.Refusals, schedule.TooFar):
		return nil, startFault("must be at most %d days ahead", rules.MaxDaysAhead)
	}
	warnings := make([]protocol.MeetingWarning, 0, len(v.Warnings))
	for _, f := range v.Warnings {
		warnings = append(warnings, protocol.MeetingWarning(f))
	}
	return warnings, nil
}

func startFault(format string, n int) error {
	return protocol.Invalid(protocol.Fault{Pointer: "/startsAt", Code: "out-of-range", Detail: fmt.Sprintf(format, n)})
}

// Limits of requests, in addition to those of package protocol.
const (
	askedADay = 20  // requests of one identity or network to everybody
	perHour   = 200 // confirmation mails of the node, where the operator sets no other number
)

// admit decides whether the caller may ask the person: it is not blocked, and no limit is reached.
func (m *Meeting) admit(ctx context.Context, tx *storage.Tx, c protocol.Caller, w wish, mail string, mailbox [32]byte) error {
	handle := w.settings.Handle
	if c.Owns(handle) {
		return protocol.Errorf(protocol.Forbidden, "this is your own profile")
	}
	_, domain, _ := strings.Cut(mail, "@")
	if w.settings.Rules.VerifiedDomain && !signsFor(c, domain) {
		return errDomain(handle)
	}
	names := c.KnownAs(c.ID())
	if m.Mail() == nil { // where a mailbox is confirmed, only its reader learns that it is blocked
		names = append(append(names, blockedMailbox(mailbox)), blockedDomains(domain)...)
	}
	blocked, err := tx.ContactBlocks().Match(ctx, handle, names)
	if err != nil {
		return err
	}
	if blocked {
		return protocol.Errorf(protocol.ContactRefused, "@%s does not accept meeting requests from you", handle)
	}
	n, err := tx.Meetings().Count(ctx, handle, c.ID())
	if err != nil {
		return err
	}
	switch {
	case n.OfCaller >= protocol.MaxWaitingOfCaller:
		return protocol.Errorf(protocol.Conflict, "%d requests of yours, or of your network, to @%s wait; cancel one, or wait", n.OfCaller, handle)
	case n.OnNode >= protocol.MaxWaitingOnNode:
		return protocol.Errorf(protocol.Conflict, "%d requests of yours, or of your network, wait on this node; cancel one, or wait", n.OnNode)
	case n.AskedByCaller >= askedADay:
		return tooMany(24*time.Hour, "%d requests came from you, or from your network, within a day, which is the most", askedADay)
	case (protocol.Shared{Most: w.settings.Rules.Complete().MaxWaiting}).Full(c.Known() || m.Mail() != nil, n.ForPerson):
		return refused(handle, "too many requests wait for @%s; try again later", handle)
	case m.Mail() == nil:
		return nil
	}
	letters, err := lettersOf(ctx, tx)
	if err != nil {
		return err
	}
	if err := protocol.Price(c, max(protocol.SharedMeetings.Steps(n.Unconfirmed.Strangers), m.budget().Steps(letters.Strangers))); err != nil {
		return err
	}
	return m.makeRoom(ctx, tx, handle, protocol.SharedMeetings.Admit(c, n.Unconfirmed))
}

// refused is the conflict of a request for which a person has no room, which the person is shown the
// number of.
func refused(handle, format string, args ...any) error {
	e := protocol.Errorf(protocol.Conflict, format, args...)
	e.Refused = handle
	return e
}

// makeRoom ends as many unconfirmed requests to a person as giveWay says, the oldest first.
func (m *Meeting) makeRoom(ctx context.Context, tx *storage.Tx, handle string, giveWay protocol.Waiting) error {
	if giveWay == (protocol.Waiting{}) {
		return nil
	}
	if _, err := tx.Profiles().ForUpdate(ctx, handle); err != nil {
		return err
	}
	for _, of := range []struct {
		known bool
		n     int
	}{{false, giveWay.Strangers}, {true, giveWay.Known}} {
		old, err := tx.Meetings().OldestUnconfirmed(ctx, handle, of.known, of.n)
		if err != nil {
			return err
		}
		for i := range old {
			old[i].GaveWay = true
			if err := m.move(ctx, tx, &old[i], change{to: protocol.MeetingExpired, note: "gave way to newer requests: too many waited unconfirmed"}); err != nil {
				return err
			}
		}
		if err := tx.Crowds().Add(ctx, handle, storage.CrowdMeetingGaveWay, len(old)); err != nil {
			return err
		}
	}
	return nil
}

func tooMany(wait time.Duration, format string, args ...any) error {
	e := protocol.Errorf(protocol.RateLimited, format, args...)
	e.RetryAfter = wait
	return e
}

func meetingNotFound() error {
	return protocol.Errorf(protocol.NotFound, "there is no meeting request with that id that you may read; send its status token, or sign as its requester")
}

// asked returns the request that a caller may read: with its status token, with the ticket of a mail about
// it, or as its requester.
func (m *Meeting) asked(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingInput) (*storage.StoredMeeting, error) {
	r, err := tx.Meetings().ByID(ctx, in.ID)
	if err != nil {
		return nil, storage.IfMissing(err, meetingNotFound())
	}
	if token := cmp.Or(in.StatusToken, c.ReadToken); token != "" {
		if !protocol.SecretMatches(token, r.TokenHash) && !m.isReaders(r, token) {
			return nil, meetingNotFound()
		}
		return r, nil
	}
	visitor := len(r.Visitor) > 0 && c.Visitor == string(r.Visitor)
	if !visitor && !(c.May(protocol.ScopePost) && c.Made(r.Author, r.By)) {
		return nil, meetingNotFound()
	}
	return r, nil
}

// Opens returns the name under which a requester reads the news of a request, when the caller may read it.
func (m *Meeting) Opens(ctx context.Context, tx *storage.Tx, c protocol.Caller, id, token string) (string, error) {
	_, err := m.asked(ctx, tx, c, protocol.MeetingInput{ID: id, StatusToken: token})
	return storage.MeetingReader(id), err
}

// Get returns a request to its requester; for everyone else it is not found.
func (m *Meeting) Get(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingInput) (protocol.MeetingRequest, error) {
	r, err := m.asked(ctx, tx, c, in)
	if err != nil {
		return protocol.MeetingRequest{}, err
	}
	r.State = stateNow(tx, r)
	return m.view(r), nil
}

// Cancel withdraws a request that waits, or cancels an approved meeting.
func (m *Meeting) Cancel(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingInput) (protocol.MeetingRequest, error) {
	if _, err := m.asked(ctx, tx, c, in); err != nil {
		return protocol.MeetingRequest{}, err
	}
	r, _, err := locked(ctx, tx, in.ID)
	if err != nil {
		return protocol.MeetingRequest{}, err
	}
	switch state := stateNow(tx, r); {
	case state == protocol.MeetingWithdrawn || state == protocol.MeetingCancelled:
	case state.Waits():
		err = m.move(ctx, tx, r, change{to: protocol.MeetingWithdrawn, note: "withdrawn by the requester"})
	case state == protocol.MeetingApproved:
		err = m.move(ctx, tx, r, change{to: protocol.MeetingCancelled, note: "cancelled by the requester"})
	default:
		err = protocol.Errorf(protocol.Conflict, "the request is %s; only one that waits or is approved can be cancelled", state)
	}
	return m.view(r), err
}

// Pick approves a request with one of the proposed times.
func (m *Meeting) Pick(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingPick) (protocol.MeetingRequest, error) {
	if _, err := m.asked(ctx, tx, c, in.MeetingInput); err != nil {
		return protocol.MeetingRequest{}, err
	}
	r, _, err := locked(ctx, tx, in.ID)
	if err != nil {
		return protocol.MeetingRequest{}, err
	}
	state := stateNow(tx, r)
	if state == protocol.MeetingApproved && r.StartsAt.Equal(in.StartsAt) {
		return m.view(r), nil
	}
	if state != protocol.MeetingProposed {
		return protocol.MeetingRequest{}, protocol.Errorf(protocol.Conflict, "the request is %s; there are no proposed times to take", state)
	}
	n := slices.IndexFunc(r.Proposals, func(t protocol.MeetingTime) bool { return t.StartsAt.Equal(in.StartsAt) })
	if n < 0 {
		return protocol.MeetingRequest{}, protocol.Invalid(protocol.Fault{Pointer: "/startsAt", Code: "not-allowed", Detail: "is not one of the proposed times"})
	}
	t := r.Proposals[n]
	if err := within(tx, "/startsAt", t.StartsAt); err != nil {
		return protocol.MeetingRequest{}, err
	}
	if err := free(ctx, tx, r, t); err != nil {
		return protocol.MeetingRequest{}, err
	}
	r.StartsAt, r.EndsAt, r.Proposals = t.StartsAt, t.EndsAt, nil
	err = m.move(ctx, tx, r, change{to: protocol.MeetingApproved, note: "the requester took a proposed time"})
	return m.view(r), err
}
