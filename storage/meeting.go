package storage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// A StoredMeeting is a meeting request with the node's own data about it.
type StoredMeeting struct {
	ID, Handle       string // Handle is the person that is asked
	State            protocol.MeetingState
	Shown            bool // the person may see it: its mailbox was confirmed
	StartsAt, EndsAt time.Time
	Requester        string   // who asked, as limits know it
	Known            bool     // who asked is known to the node, or the mailbox was confirmed
	Mailbox          [32]byte // keyed hash of the mailbox
	TokenHash        [32]byte
	AskedAt          time.Time
	DueAt            time.Time `db:",null"` // when it expires, is done or is deleted by itself; zero for none
	MailUntil        time.Time `db:",null"` // when the mail address is deleted; zero once it is
	MovedAt          time.Time
	Moves            int // how often the state has changed, moves in time included
	Sequence         int
	MeetingDoc       `db:"doc"`
}

func (m *StoredMeeting) loaded() { m.Author.Complete(m.AskedAt) }

// A MeetingDoc is what is stored of a request and no statement looks for.
type MeetingDoc struct {
	Author    protocol.Author        `json:"author"`
	Name      string                 `json:"name"`           // of the requester
	Mail      string                 `json:"mail,omitempty"` // of the requester, "" once it is deleted
	Confirmed bool                   `json:"confirmed,omitempty"`
	Purpose   string                 `json:"purpose"`
	TimeZone  string                 `json:"timezone,omitempty"` // of the requester
	Callback  string                 `json:"callback,omitempty"`
	Visitor   []byte                 `json:"visitor,omitempty"` // hash of the cookie of the browser that asked
	By        string                 `json:"by,omitempty"`      // the profile of this node that asked
	Proposals []protocol.MeetingTime `json:"proposals,omitempty"`
	Location  string                 `json:"location,omitempty"`
	Answer    string                 `json:"answer,omitempty"`  // of the person
	GaveWay   bool                   `json:"gaveWay,omitempty"` // it expired before its time, for newer requests
	Sent      protocol.MeetingMail   `json:"sent,omitempty"`    // the last mail to the requester
	Language  string                 `json:"language,omitempty"`
	Attends   *Attendance            `json:"attends,omitempty"` // what the requester's calendar answered last
	History   []protocol.MeetingStep `json:"history"`           // oldest first; Moves is its length
}

// An Attendance is what a calendar answered to an invitation.
type Attendance struct {
	protocol.MeetingAttendance
	Sequence int       `json:"sequence"`        // of the invitation
	Stamp    time.Time `json:"stamp,omitzero"`  // of the answer, by the clock of its sender
	Times    int       `json:"times,omitempty"` // other times that were proposed in answers to this invitation
}

var meetingTable = tableOf[StoredMeeting]("meeting")

// A newMeeting is a request with who began it (begunTables), and the profile of this node that asked.
type newMeeting struct {
	StoredMeeting
	Agent        *string
	WriterHandle string `db:",null"`
}

var newMeetingTable = tableOf[newMeeting]("meeting")

// MeetingReader is the name under which the holder of a request's status token reads news.
func MeetingReader(id string) string { return "meeting:" + id }

// Requests by their keys.
var (
	meetingByID    = meetingTable.from + `WHERE id = ?`
	meetingByToken = meetingTable.from + `WHERE token_hash = ?`
)

// ByID returns a request; ErrNotFound when there is none. Who changes it locks the person's profile
// first (Profiles.ForUpdate).
func (ms Meetings) ByID(ctx context.Context, id string) (*StoredMeeting, error) {
	return pointer(find[StoredMeeting](ctx, ms.tx, meetingByID, id))
}

// HandleOf returns the person that a request is to; ErrNotFound when there is none.
func (ms Meetings) HandleOf(ctx context.Context, id string) (string, error) {
	return find[string](ctx, ms.tx, `SELECT handle FROM meeting WHERE id = ?`, id)
}

// ByToken returns the request that a status token opens, by the token's hash.
func (ms Meetings) ByToken(ctx context.Context, hash [32]byte) (*StoredMeeting, error) {
	return pointer(find[StoredMeeting](ctx, ms.tx, meetingByToken, hash[:]))
}

// Insert stores a new request, as its first move.
func (ms Meetings) Insert(ctx context.Context, m *StoredMeeting) error {
	m.Moves, m.MovedAt, m.History = 1, ms.tx.Now, []protocol.MeetingStep{{State: m.State, At: ms.tx.Now}}
	if err := ms.Import(ctx, m); err != nil {
		return err
	}
	return ms.moved(ctx, m)
}

func (ms Meetings) moved(ctx context.Context, m *StoredMeeting) error {
	return ms.tx.Exchanges().thing(ctx, m.ID, m.Handle, m.Requester, protocol.MeetingExchange(m.State))
}

// Import stores a request unchanged, with its history.
func (ms Meetings) Import(ctx context.Context, m *StoredMeeting) error {
	if err := newMeetingTable.insert(ctx, ms.tx, &newMeeting{*m, begunBy(m.Requester, m.Author), m.By}); err != nil {
		return fmt.Errorf("store meeting: %w", err)
	}
	return nil
}

// Save stores what may change of a request. The person's profile is locked.
func (ms Meetings) Save(ctx context.Context, m *StoredMeeting) error {
	return meetingTable.update(ctx, ms.tx, m, "id", "state", "shown", "starts_at", "ends_at", "due_at", "mail_until",
		"moved_at", "moves", "sequence", "doc", "known")
}

// Move stores a request that has just moved, and the move in its history.
func (ms Meetings) Move(ctx context.Context, m *StoredMeeting, note string) error {
	m.Moves++
	m.MovedAt = ms.tx.Now
	m.History = append(m.History, protocol.MeetingStep{State: m.State, At: ms.tx.Now, Note: note})
	if err := ms.Save(ctx, m); err != nil {
		return err
	}
	return ms.moved(ctx, m)
}

// longest is the longest meeting: what overlaps a time began no longer before it.
const longest = 240 * time.Minute

const meetingsTaken = `SELECT id, state = 'approved' AS approved, starts_at, ends_at FROM meeting
	WHERE handle = ? AND starts_at > ? AND starts_at < ? AND state IN ('submitted', 'approved')`

// A TakenTime is the time of a request that is approved, or waits.
type TakenTime struct {
	ID       string
	Approved bool
	protocol.MeetingTime
}

// Taken returns the times of the requests to a person that overlap a range: approved ones, and those
// that wait; proposed times are among the latter.
func (ms Meetings) Taken(ctx context.Context, handle string, from, to time.Time) ([]TakenTime, error) {
	all, err := list[TakenTime](ctx, ms.tx, meetingsTaken, handle, millis(from.Add(-longest)), millis(to))
	if err != nil {
		return nil, err
	}
	proposed, err := ms.proposed(ctx, handle)
	for i := range proposed {
		for _, p := range proposed[i].Proposals {
			all = append(all, TakenTime{ID: proposed[i].ID, MeetingTime: p})
		}
	}
	within := all[:0]
	for _, t := range all {
		if t.StartsAt.Before(to) && from.Before(t.EndsAt) {
			within = append(within, t)
		}
	}
	return within, err
}

var meetingsProposed = meetingTable.from + `WHERE handle = ? AND state = 'proposed' AND shown AND ` + onesOwnState

// lastID is after every id.
const lastID = "mtg_z"

// proposed returns the requests to a person that wait for their requesters, 100 at most.
func (ms Meetings) proposed(ctx context.Context, handle string) ([]StoredMeeting, error) {
	return list[StoredMeeting](ctx, ms.tx, meetingsProposed, handle, lastID, protocol.MaxLimit)
}

// Counts of one requester, each up to a small number. waitingOnNode names handle so that it reads the index of
// requests that wait.
const (
	waitingOfCaller  = `SELECT count(*) FROM meeting WHERE requester = ? AND handle = ? AND state IN ('unconfirmed', 'submitted', 'proposed')`
	waitingOnNode    = `SELECT count(*) FROM meeting WHERE requester = ? AND handle > '' AND state IN ('unconfirmed', 'submitted', 'proposed')`
	waitingForPerson = `SELECT ` + byKnown + ` FROM (SELECT known FROM meeting WHERE handle = ? AND shown AND state IN ('submitted', 'proposed') LIMIT 200) r`
	unconfirmedOf    = `SELECT (SELECT count(*) FROM (` + unconfirmedBy + `) k), (SELECT count(*) FROM (` + unconfirmedBy + `) s)`
	unconfirmedBy    = `SELECT 1 FROM meeting WHERE handle = ? AND state = 'unconfirmed' AND known = ? ORDER BY asked_at LIMIT 200`
	askedByCaller    = `SELECT count(*) FROM (SELECT 1 FROM meeting WHERE requester = ? AND asked_at > ? LIMIT 100) r`

	byKnown = `COALESCE(sum(CASE WHEN known THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN known THEN 0 ELSE 1 END), 0)`
)

// A MeetingCount is what limits a requester.
type MeetingCount struct {
	OfCaller      int              // waiting requests of the caller to the person
	OnNode        int              // of the caller, to everybody
	ForPerson     protocol.Waiting // submitted and proposed requests of everybody to the person
	Unconfirmed   protocol.Waiting // likewise, whose mailbox is not confirmed
	AskedByCaller int              // requests of the caller within a day, to everybody
}

// Count counts the requests that limit a requester. A concurrent count of the same caller or person
// waits for this transaction to end.
func (ms Meetings) Count(ctx context.Context, handle, requester string) (c MeetingCount, err error) {
	for _, name := range []string{"requester " + requester, "asked " + handle} {
		if err := ms.tx.lockName(ctx, name); err != nil {
			return c, err
		}
	}
	day := millis(ms.tx.Now.Add(-24 * time.Hour))
	for _, one := range []struct {
		into []any
		text string
		args []any
	}{
		{[]any{&c.OfCaller}, waitingOfCaller, []any{requester, handle}}, {[]any{&c.OnNode}, waitingOnNode, []any{requester}},
		{[]any{&c.ForPerson.Known, &c.ForPerson.Strangers}, waitingForPerson, []any{handle}},
		{[]any{&c.Unconfirmed.Known, &c.Unconfirmed.Strangers}, unconfirmedOf, []any{handle, true, handle, false}},
		{[]any{&c.AskedByCaller}, askedByCaller, []any{requester, day}},
	} {
		if err := ms.tx.row(ctx, one.text, one.args...).Scan(one.into...); err != nil {
			return c, err
		}
	}
	return c, nil
}

var (
	oldestUnconfirmed = meetingTable.from + `WHERE handle = ? AND state = 'unconfirmed' AND known = ? ORDER BY asked_at LIMIT ?`
	waitingOfMailbox  = meetingTable.from + `WHERE mailbox = ? AND state IN ('unconfirmed', 'submitted', 'proposed')
	ORDER BY id DESC LIMIT 50`
)

// OldestUnconfirmed returns the requests to a person whose mailbox is not confirmed, of known callers or
// of strangers, the oldest first.
func (ms Meetings) OldestUnconfirmed(ctx context.Context, handle string, known bool, most int) ([]StoredMeeting, error) {
	return list[StoredMeeting](ctx, ms.tx, oldestUnconfirmed, handle, known, most)
}

// OfMailbox returns the requests of a mailbox that wait, the newest 50, newest first.
func (ms Meetings) OfMailbox(ctx context.Context, mailbox [32]byte) ([]StoredMeeting, error) {
	return list[StoredMeeting](ctx, ms.tx, waitingOfMailbox, mailbox[:])
}

// List returns the requests to a person that it may see, newest first; state "" is every state.
func (ms Meetings) List(ctx context.Context, handle string, state protocol.MeetingState, limit int, after string) (protocol.Page[StoredMeeting], error) {
	text, args := meetingsQuery(handle, state)
	return newest[StoredMeeting](ctx, ms.tx, "meetings-"+string(state), "id", limit, after, text, args...)
}

func meetingsQuery(handle string, state protocol.MeetingState) (text string, args []any) {
	if state == "" {
		return meetingTable.from + `WHERE handle = ? AND shown AND ` + onesOwn, []any{handle}
	}
	return meetingTable.from + `WHERE handle = ? AND state = ? AND shown AND ` + onesOwnState, []any{handle, string(state)}
}

var meetingsAgenda = meetingTable.from + `WHERE handle = ? AND starts_at >= ? AND starts_at < ? AND (starts_at, id) > (?, ?)
	AND ` + onAgenda + ` ORDER BY starts_at, id LIMIT ?`

// onAgenda selects requests that take place, wait for the person, or took place; the index meeting_agenda
// has them.
const onAgenda = `state IN ('submitted', 'approved', 'done', 'no_show')`

// Agenda returns the meetings of a person that begin in a range, in the order of their times: those that
// are approved, wait for the person, or took place.
func (ms Meetings) Agenda(ctx context.Context, handle string, from, to time.Time, limit int, after string) (protocol.Page[StoredMeeting], error) {
	limit = bounded(limit)
	const listing = "meetings-agenda"
	position, err := protocol.ParseCursor(listing, after)
	if err != nil {
		return protocol.Page[StoredMeeting]{}, err
	}
	first, last := millis(from), ""
	if position != "" {
		start, id, _ := strings.Cut(position, " ")
		n, err := strconv.ParseInt(start, 10, 64)
		if err != nil || !protocol.IsID(protocol.MeetingID, id) {
			return protocol.Page[StoredMeeting]{}, protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this listing")
		}
		first, last = max(first, n), id
		if n < first {
			last = ""
		}
	}
	found, err := list[StoredMeeting](ctx, ms.tx, meetingsAgenda, handle, first, millis(to), first, last, limit+1)
	return page(found, limit, listing, func(m StoredMeeting) string { return strconv.FormatInt(millis(m.StartsAt), 10) + " " + m.ID }), err
}

// Delete deletes a request.
func (ms Meetings) Delete(ctx context.Context, id string) error {
	return ms.tx.exec(ctx, `DELETE FROM meeting WHERE id = ?`, id)
}

const meetingsOver = `moved_at < ? AND ` + meetingIsOver + ` ORDER BY moved_at LIMIT 500`

// meetingIsOver selects requests with which nothing more happens; the index meeting_over has them.
const meetingIsOver = `state IN ('declined', 'withdrawn', 'expired', 'cancelled', 'done', 'no_show')`

// Prune deletes requests that were over before a time, at most 500 per call, and returns how many.
func (ms Meetings) Prune(ctx context.Context, before time.Time) (int, error) {
	return ms.tx.deleteSome(ctx, "meeting", "id", meetingsOver, millis(before))
}

var meetingMailsDue = meetingTable.from + `WHERE mail_until <= ? ORDER BY mail_until LIMIT 500`

// ForgetMail deletes the mail addresses whose time is over, of at most 500 requests per call, and
// returns how many.
func (ms Meetings) ForgetMail(ctx context.Context) (int, error) {
	if err := ms.tx.dirty(); err != nil {
		return 0, err
	}
	due, err := list[StoredMeeting](ctx, ms.tx, meetingMailsDue, millis(ms.tx.Now))
	if err != nil {
		return 0, err
	}
	for i := range due {
		due[i].Mail, due[i].MailUntil = "", time.Time{}
		if err := ms.Save(ctx, &due[i]); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

const comingMeeting = `SELECT 1 FROM meeting WHERE handle = ? AND starts_at > ? AND state IN ('submitted', 'approved') AND state = 'approved' LIMIT 1`

// ErrMeeting is returned when a profile has meetings that are approved and not over.
var ErrMeeting = errors.New("the profile has approved meetings that are not over")

// mayDrop returns ErrMeeting while requesters expect a profile that is to be deleted. Its requests go with
// its threads (Threads.DropAll).
func (ms Meetings) mayDrop(ctx context.Context, handle string) error {
	coming, err := ms.tx.exists(ctx, comingMeeting, handle, millis(ms.tx.Now))
	if coming {
		return ErrMeeting
	}
	return err
}
