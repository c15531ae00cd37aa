package storage

import (
	"context"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// A StoredComplaint is a complaint with the node's own data about it.
type StoredComplaint struct {
	ID           string
	State        protocol.ComplaintState
	DueAt        time.Time // when an operator has to do something about it
	Complainant  string    // who filed it, as limits know it
	Known        bool
	TokenHash    [32]byte
	CreatedAt    time.Time
	Until        time.Time `db:",null"` // when it is deleted; zero while it is not resolved
	Appeal       string    `db:",null"` // the decision that it is an appeal against, by its line in the moderation log; "" for other complaints
	ComplaintDoc `db:"doc"`
}

// A ComplaintDoc is what is stored of a complaint and no statement looks for.
type ComplaintDoc struct {
	Subject        string     `json:"subject"`
	Kind           string     `json:"kind"`
	Text           string     `json:"text"`
	Mail           string     `json:"mail,omitempty"`
	Confirmed      bool       `json:"confirmed,omitempty"` // the reader of the mailbox wants to be told
	Language       string     `json:"language,omitempty"`
	AcknowledgeBy  time.Time  `json:"acknowledgeBy"`
	ResolveBy      time.Time  `json:"resolveBy"`
	AcknowledgedAt *time.Time `json:"acknowledgedAt,omitempty"`
	ResolvedAt     *time.Time `json:"resolvedAt,omitempty"`
	Answer         string     `json:"answer,omitempty"`
	Handle         string     `json:"handle,omitempty"` // of an appeal: the profile that it is about, or whose post it is about
	Reason         string     `json:"reason,omitempty"` // of an appeal: of the decision
}

var complaintTable = tableOf[StoredComplaint]("complaint")

// Complaints reads and writes the complaints to the operators.
type Complaints struct{ tx *Tx }

func (tx *Tx) Complaints() Complaints { return Complaints{tx} }

// Lock makes other transactions that lock the complaints wait for this one, so that they are counted one after another.
func (cs Complaints) Lock(ctx context.Context) error { return cs.tx.lockName(ctx, "complaints") }

// Insert stores a new complaint; ErrExists when there is an appeal against the same decision.
func (cs Complaints) Insert(ctx context.Context, c *StoredComplaint) error {
	return complaintTable.create(ctx, cs.tx, c)
}

// Update stores a complaint that was changed.
func (cs Complaints) Update(ctx context.Context, c *StoredComplaint) error {
	return complaintTable.update(ctx, cs.tx, c, "id", "state", "due_at", "until", "doc")
}

var complaintByID = complaintTable.from + `WHERE id = ?`

// ByID returns a complaint; ErrNotFound when there is none.
func (cs Complaints) ByID(ctx context.Context, id string) (*StoredComplaint, error) {
	c, err := find[StoredComplaint](ctx, cs.tx, complaintByID, id)
	return &c, err
}

const (
	complaintsOpen  = `SELECT count(*) FROM complaint WHERE state <> 'resolved' AND known = ?`
	complaintsLate  = `SELECT count(*) FROM (SELECT 1 FROM complaint WHERE state <> 'resolved' AND due_at <= ? LIMIT 10000) r`
	complaintsSince = `SELECT count(*) FROM complaint WHERE complainant = ? AND created_at > ?`
)

// Open counts the complaints that are not resolved, by who filed them.
func (cs Complaints) Open(ctx context.Context) (w protocol.Waiting, err error) {
	if w.Known, err = find[int](ctx, cs.tx, complaintsOpen, true); err != nil {
		return w, err
	}
	w.Strangers, err = find[int](ctx, cs.tx, complaintsOpen, false)
	return w, err
}

// Overdue counts the complaints about which an operator should have done something, up to 10,000.
func (cs Complaints) Overdue(ctx context.Context) (int, error) {
	return find[int](ctx, cs.tx, complaintsLate, millis(cs.tx.Now))
}

// Since counts the complaints of one complainant after a time.
func (cs Complaints) Since(ctx context.Context, complainant string, after time.Time) (int, error) {
	return find[int](ctx, cs.tx, complaintsSince, complainant, millis(after))
}

// listComplaints names the listings in their cursors.
const (
	listComplaints = "complaints"
	listResolved   = "complaints resolved"
)

var (
	complaintsDue      = complaintTable.from + `WHERE state <> 'resolved' AND due_at <= ? AND (due_at, id) > (?, ?) ORDER BY due_at, id LIMIT ?`
	complaintsResolved = complaintTable.from + `WHERE state = 'resolved' AND id < ? ORDER BY id DESC LIMIT ?`
)

// Due lists the complaints that are not resolved and due until a time, those that are due first at the beginning.
func (cs Complaints) Due(ctx context.Context, until time.Time, limit int, after string) (protocol.Page[StoredComplaint], error) {
	limit = bounded(limit)
	at, err := protocol.ParseCursor(listComplaints, after)
	if err != nil {
		return protocol.Page[StoredComplaint]{}, err
	}
	due, id, _ := strings.Cut(at, " ")
	from, err := strconv.ParseInt("0"+due, 10, 64)
	if err != nil {
		return protocol.Page[StoredComplaint]{}, protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this listing; leave it out")
	}
	found, err := list[StoredComplaint](ctx, cs.tx, complaintsDue, millis(until), from, id, limit+1)
	return page(found, limit, listComplaints, func(c StoredComplaint) string { return number(millis(c.DueAt)) + " " + c.ID }), err
}

// Resolved lists the complaints that are resolved, the newest first.
func (cs Complaints) Resolved(ctx context.Context, limit int, after string) (protocol.Page[StoredComplaint], error) {
	return newest[StoredComplaint](ctx, cs.tx, listResolved, "id", limit, after, complaintsResolved)
}
