package meeting

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/protocol/schedule"
	"stoa/storage"
)

// locked returns a request and the profile of the person, whose row is locked: everything that moves a
// request goes through here, so that a person's calendar has one writer.
func locked(ctx context.Context, tx *storage.Tx, id string) (*storage.StoredMeeting, *storage.StoredProfile, error) {
	handle, err := tx.Meetings().HandleOf(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	p, err := tx.Profiles().ForUpdate(ctx, handle)
	if err != nil {
		return nil, nil, err
	}
	m, err := tx.Meetings().ByID(ctx, id)
	return m, p, err
}

// A change is what a move of a request is.
type change struct {
	to       protocol.MeetingState
	note     string // for the history
	byPerson bool   // otherwise by the requester, or by time

	person *storage.StoredProfile // the person's, where it was read already
}

// move changes the state of a request, with everything that follows from any change: its history, news
// for both sides, mail to the requester, a notice to the person, and the requester's callback.
func (m *Meeting) move(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, c change) error {
	if !r.State.May(c.to) {
		return fmt.Errorf("meeting %s is %s and cannot become %s", r.ID, r.State, c.to)
	}
	if c.to == r.State && len(r.History) >= maxMoves {
		return protocol.Errorf(protocol.Conflict, "the meeting was moved %d times, which is the most; cancel it, and meet anew", maxMoves)
	}
	was := r.State
	r.State, r.Shown = c.to, r.Shown || c.to == protocol.MeetingSubmitted
	if c.to == protocol.MeetingApproved && was == c.to || c.to == protocol.MeetingCancelled {
		r.Sequence++
	}
	if c.to == protocol.MeetingApproved && r.Location == "" {
		s, err := m.settingsOfPerson(ctx, tx, r.Handle, c.person)
		if err != nil {
			return err
		}
		r.Location = place(s.Rules.Location)
	}
	r.DueAt = dueAt(tx.Now, r)
	r.MailUntil = time.Time{}
	if r.Mail != "" {
		r.MailUntil = later(r.EndsAt, tx.Now).Add(protocol.MeetingMailKept)
	}
	if m.mails(r, c) {
		r.Sent = protocol.MeetingMailQueued
	}
	if err := tx.Meetings().Move(ctx, r, c.note); err != nil {
		return err
	}
	return m.follow(ctx, tx, r, c)
}

// maxMoves is how many states a meeting that is moved again may have had, so that its history stays small.
const maxMoves = 60

// follow enqueues what follows from a move.
func (m *Meeting) follow(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, c change) error {
	ref := storage.MessageRef(r.ID, r.Moves)
	var err error
	if r.Moves > 1 { // the requester knows of the request
		err = tx.News().Append(ctx, storage.NewsMeeting, ref, requestReaders(r)...)
	}
	if r.Shown {
		err = errors.Join(err, tx.News().Append(ctx, storage.NewsMeetingHere, ref, "handle:"+r.Handle))
	}
	var jobs []storage.Job
	if !r.DueAt.IsZero() {
		jobs = append(jobs, jobOf(storage.MeetingDueJob, "", subject{ID: r.ID, N: r.Moves}, r.DueAt))
	}
	if m.mails(r, c) {
		jobs = append(jobs, jobOf(storage.MeetingMailJob, mailLane, subject{ID: r.ID, N: r.Moves}, tx.Now))
	}
	jobs = append(jobs, reminderJobs(tx, r)...)
	if r.Callback != "" && r.Moves > 1 {
		jobs = append(jobs, jobOf(storage.MeetingUpdateJob, webhook.Lane(r.Callback), subject{ID: r.ID, N: r.Moves}, tx.Now))
	}
	err = errors.Join(err, tx.Enqueue(ctx, jobs...))
	if r.Shown && !c.byPerson && c.to != protocol.MeetingDone {
		err = errors.Join(err, m.notify(ctx, tx, r))
	}
	return errors.Join(err, m.putEvent(ctx, tx, r))
}

// mails reports whether the requester gets a mail about a move: of what the person did or left undone, and of
// the approval, if the mailbox was confirmed.
func (m *Meeting) mails(r *storage.StoredMeeting, c change) bool {
	if m.Mail() == nil || r.Mail == "" || !r.Confirmed {
		return false
	}
	switch c.to {
	case protocol.MeetingApproved, protocol.MeetingProposed, protocol.MeetingDeclined, protocol.MeetingCancelled, protocol.MeetingExpired:
		return true
	}
	return false
}

// notify tells the person of what the requester did. The title has the name that the requester gave.
func (m *Meeting) notify(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) error {
	event, what := protocol.MeetingChanged, "Meeting "+string(r.State)+": "
	if r.State == protocol.MeetingSubmitted {
		event, what = protocol.MeetingAsked, "Meeting request: "
	}
	s, err := m.settingsOf(ctx, tx, r.Handle)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%s%d min with %s (unverified), %s", what, minutes(r), r.Name, both(r.StartsAt, s.Rules.Complete().TimeZone, r.TimeZone))
	return tx.Notify(ctx, protocol.Notice{Handle: r.Handle, Event: event, Subject: r.ID, Title: title})
}

// dueAt returns when something of a request is due by itself.
func dueAt(now time.Time, r *storage.StoredMeeting) time.Time {
	switch r.State {
	case protocol.MeetingUnconfirmed:
		return r.AskedAt.Add(protocol.ConfirmMeetingFor)
	case protocol.MeetingSubmitted:
		return r.StartsAt
	case protocol.MeetingProposed:
		last := time.Time{}
		for _, t := range r.Proposals {
			last = later(last, t.StartsAt)
		}
		if until := now.Add(protocol.ProposalFor); until.Before(last) {
			return until
		}
		return last
	case protocol.MeetingApproved:
		return r.EndsAt
	case protocol.MeetingWithdrawn, protocol.MeetingExpired:
		if !r.Shown { // the person never saw it: only its count is needed
			return r.AskedAt.Add(protocol.ConfirmMeetingFor)
		}
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// requestReaders returns the names under which the requester reads news.
func requestReaders(r *storage.StoredMeeting) []string {
	readers := []string{storage.MeetingReader(r.ID)}
	if len(r.Visitor) > 0 {
		readers = append(readers, storage.VisitorReader(string(r.Visitor)))
	}
	return append(readers, r.Author.Names()...)
}

// place returns where a meeting is. {slug} becomes 20 random characters, which nobody can guess.
func place(template string) string {
	var b [12]byte
	rand.Read(b[:])
	slug := "stoa-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
	return strings.ReplaceAll(template, "{slug}", slug)
}

func (m *Meeting) settingsOf(ctx context.Context, tx *storage.Tx, handle string) (storage.MeetingSettings, error) {
	return m.settingsOfPerson(ctx, tx, handle, nil)
}

// settingsOfPerson is settingsOf where the profile may have been read already.
func (m *Meeting) settingsOfPerson(ctx context.Context, tx *storage.Tx, handle string, p *storage.StoredProfile) (_ storage.MeetingSettings, err error) {
	if p == nil {
		if p, err = tx.Profiles().Own(ctx, handle); err != nil {
			return storage.MeetingSettings{}, err
		}
	}
	return tx.Meetings().Settings(ctx, p)
}

// takenBy returns what is not free for a person in the days around a range. Requests that wait count
// where the person wants that; except is left out. stale says that a calendar was not read for a while.
func takenBy(ctx context.Context, tx *storage.Tx, handle string, rules protocol.MeetingRules, from, to time.Time, except string) (taken schedule.Taken,
	stale bool, err error) {
	const around = 8 * 24 * time.Hour // limits are of a day and of a week
	all, err := tx.Meetings().Taken(ctx, handle, from.Add(-around), to.Add(around))
	if err != nil {
		return taken, false, err
	}
	for _, t := range all {
		i := schedule.Interval{Start: t.StartsAt, End: t.EndsAt}
		switch {
		case t.ID == except:
		case t.Approved:
			taken.Meetings = append(taken.Meetings, i)
		case *rules.PendingBlocksSlot:
			taken.Waiting = append(taken.Waiting, i)
		}
	}
	taken.Busy, stale, err = busyOf(ctx, tx, handle, from.Add(-around), to.Add(around))
	return taken, stale, err
}

// free refuses a time at which the person has an approved meeting. The person's profile is locked, so
// that no two approved meetings of a person overlap.
func free(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, t protocol.MeetingTime) error {
	all, err := tx.Meetings().Taken(ctx, r.Handle, t.StartsAt, t.EndsAt)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Approved && o.ID != r.ID {
			return protocol.Errorf(protocol.Conflict, "@%s has another meeting at %s", r.Handle, t.StartsAt.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

type subject struct {
	ID  string `json:"id"`
	N   int    `json:"n,omitempty"`
	Try int    `json:"try,omitempty"`

	Hours int    `json:"hours,omitempty"` // of a reminder
	Part  string `json:"part,omitempty"`  // of asking a mailbox
	Box   string `json:"box,omitempty"`   // likewise, the hash of the mailbox
}

func enqueue(ctx context.Context, tx *storage.Tx, kind storage.JobKind, lane string, s subject, at time.Time) error {
	return tx.Enqueue(ctx, jobOf(kind, lane, s, at))
}

func jobOf(kind storage.JobKind, lane string, s subject, at time.Time) storage.Job {
	args, _ := json.Marshal(s) // of texts and numbers, which never fails
	return storage.Job{Kind: kind, Lane: lane, Args: args, RunAt: at, Dedupe: fmt.Sprintf("%s %s %d %d %d", kind, s.ID, s.N, s.Try, s.Hours)}
}
