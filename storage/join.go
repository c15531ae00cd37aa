package storage

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// A JoinWay is how a profile joined by itself.
type JoinWay string

const (
	JoinedByPage   JoinWay = "page"    // a person, on the page to join
	JoinedSignedIn JoinWay = "account" // a person with an account
	JoinedSigned   JoinWay = "signed"  // an agent, by a signed request
	JoinedByProof  JoinWay = "proof"   // an agent, by a proof of work
)

// A Joined says how a profile joined.
type Joined struct {
	Handle      string
	Way         JoinWay
	At          time.Time
	Directory   string     `db:",null"` // address of the key directory whose keys speak for the profile, "" for none
	Identity    string     `db:",null"` // chain identity by which it joined, "" for none
	ConfirmedAt *time.Time // when it was known that somebody can act as it; nil: not yet
	Claim       []byte     `db:",null"` // hash of the secret by which a person takes it
	ClaimUntil  time.Time
	ClaimedAt   *time.Time // when a person took it
}

var joinedTable = tableOf[Joined]("joined")

// Joins reads and writes who joined, and what joining takes.
type Joins struct{ tx *Tx }

func (tx *Tx) Joins() Joins { return Joins{tx} }

// Put stores how a profile joined. ErrExists when its directory has another profile.
func (js Joins) Put(ctx context.Context, j Joined) error {
	err := joinedTable.put(ctx, js.tx, &j, "handle")
	if commit.Conflicts(err) {
		return ErrExists
	}
	return err
}

// Of returns how a profile joined; ErrNotFound when it did not join by itself.
func (js Joins) Of(ctx context.Context, handle string) (Joined, error) {
	return find[Joined](ctx, js.tx, joinedTable.from+`WHERE handle = ?`, handle)
}

// OfDirectory returns the profile for which the keys of a directory speak; ErrNotFound when there is none.
func (js Joins) OfDirectory(ctx context.Context, address string) (Joined, error) {
	return find[Joined](ctx, js.tx, joinedTable.from+joinedDirectory, address)
}

const (
	joinedDirectory = `WHERE directory = ?`
	joinedClaim     = `WHERE claim = ? AND claim_until > ?`
)

// DropDirectory ends what the keys of a key directory may do as a profile that an account has.
func (js Joins) DropDirectory(ctx context.Context, handle string) error {
	return js.tx.exec(ctx, `UPDATE joined SET directory = NULL WHERE handle = ? AND directory IS NOT NULL
		AND EXISTS (SELECT 1 FROM account_profile p WHERE p.handle = joined.handle)`, handle)
}

// OfClaim returns the profile of a claim link that is still good; ErrNotFound when there is none.
func (js Joins) OfClaim(ctx context.Context, hash [32]byte) (Joined, error) {
	return find[Joined](ctx, js.tx, joinedTable.from+joinedClaim, hash[:], millis(js.tx.Now))
}

// Unconfirmed returns profiles that joined before a time and that nobody has acted as since.
func (js Joins) Unconfirmed(ctx context.Context, before time.Time, n int) ([]Joined, error) {
	return list[Joined](ctx, js.tx, joinedTable.from+unconfirmedJoins, millis(before), n)
}

const unconfirmedJoins = `WHERE confirmed_at IS NULL AND at < ? ORDER BY at LIMIT ?`

// Lock has another transaction that joins, or counts who did, wait for the end of this one, so that bounds and handles hold over all processes.
func (js Joins) Lock(ctx context.Context) error { return js.tx.lockName(ctx, "joins") }

// Begun notes that a network began to join; it counts until a time. known: it is an identity, an account or invited.
func (js Joins) Begun(ctx context.Context, network string, known bool, until time.Time) error {
	return js.tx.exec(ctx, `INSERT INTO join_try (id, network, known, until) VALUES (?, ?, ?, ?)`,
		protocol.NewID("joi", js.tx.Now), network, bit(known), millis(until))
}

// CountBegun counts what began and still counts: of a network, of strangers, and of all.
func (js Joins) CountBegun(ctx context.Context, network string) (own, strangers, all int, err error) {
	now := millis(js.tx.Now)
	err = js.tx.row(ctx, joinsBegun, network, now, now, now).Scan(&own, &strangers, &all)
	return own, strangers, all, err
}

const joinsBegun = `SELECT (SELECT count(*) FROM join_try WHERE network = ? AND until > ?), (SELECT count(*) FROM join_try WHERE until > ? AND known = 0),
	(SELECT count(*) FROM join_try WHERE until > ?)`

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sold hides the profile of an identity that has another owner, when the profile has no account: it is nobody's any more, and never the buyer's.
func (js Joins) sold(ctx context.Context, handle string, reason protocol.EnrolmentEnd) error {
	if reason != protocol.EndedByOwner {
		return nil
	}
	j, err := js.Of(ctx, handle)
	if err != nil || j.Way != JoinedSigned {
		return Missing(err, nil)
	}
	if _, err := js.tx.Accounts().OfProfile(ctx, handle); err != ErrNotFound {
		return err
	}
	if _, err = js.tx.Profiles().SetState(ctx, handle, protocol.ProfileLeaving, reason.Text()); err != nil {
		return err
	}
	return js.tx.Leavings().Put(ctx, &Leaving{Subject: handle, AskedAt: js.tx.Now, HiddenAt: js.tx.Now}, js.tx.Now.Add(protocol.UndoFor))
}

// A JoinMail is what was typed on the page to join, until the mailbox is confirmed.
type JoinMail struct {
	Hash       [32]byte // of the secret that the browser has
	Link       [32]byte // of the secret in the letter
	Code       [32]byte // of the first secret and the code in the letter
	Mail       string
	Draft      protocol.JoinDraft
	Invitation string // code of an invitation, "" for none
	Language   string
	Network    string
	Tries      int
	At         time.Time
	ExpiresAt  time.Time // until when it counts as a letter to the address
}

var joinMailTable = tableOf[JoinMail]("join_mail")

// Ask stores what was typed.
func (js Joins) Ask(ctx context.Context, m JoinMail) error {
	m.At = js.tx.Now
	return joinMailTable.put(ctx, js.tx, &m, "hash")
}

// CountAsked is how many letters to an address were asked for since a time.
func (js Joins) CountAsked(ctx context.Context, mail string, since time.Time) (int, error) {
	return find[int](ctx, js.tx, joinLetters, mail, millis(since))
}

const (
	joinLetters      = `SELECT count(*) FROM join_mail WHERE mail = ? AND at > ?`
	joinMailByLink   = `WHERE link = ? AND at > ?`
	invitationOfCode = `WHERE hash = ? AND used_at IS NULL AND expires_at > ?`
)

// Asked returns what a browser typed, while it may be confirmed; ErrNotFound after that.
func (js Joins) Asked(ctx context.Context, hash [32]byte) (JoinMail, error) {
	return find[JoinMail](ctx, js.tx, joinMailTable.from+`WHERE hash = ? AND at > ?`, hash[:], millis(js.tx.Now.Add(-protocol.JoinCodeLife)))
}

// AskedBy is Asked by the secret of the letter.
func (js Joins) AskedBy(ctx context.Context, link [32]byte) (JoinMail, error) {
	return find[JoinMail](ctx, js.tx, joinMailTable.from+joinMailByLink, link[:], millis(js.tx.Now.Add(-protocol.JoinCodeLife)))
}

// Coded stores the hashes of the code and the link of a letter, which replace those of the one before.
func (js Joins) Coded(ctx context.Context, m JoinMail) error {
	return one(js.tx.write(ctx, `UPDATE join_mail SET code = ?, link = ? WHERE hash = ?`, m.Code[:], m.Link[:], m.Hash[:]))
}

// Tried counts a wrong code.
func (js Joins) Tried(ctx context.Context, hash [32]byte) error {
	return js.tx.exec(ctx, `UPDATE join_mail SET tries = tries + 1 WHERE hash = ?`, hash[:])
}

// Confirmed removes what was typed; ErrNotFound when another request did.
func (js Joins) Confirmed(ctx context.Context, hash [32]byte) error {
	return one(js.tx.write(ctx, `DELETE FROM join_mail WHERE hash = ?`, hash[:]))
}

// An Invitation lets somebody join.
type Invitation struct {
	ID                   string
	Hash                 [32]byte // of its code
	Account              string   // who made it, "" for the operator on the machine
	Note                 string
	CreatedAt, ExpiresAt time.Time
	UsedAt               *time.Time
	Became               string    // handle of the profile that joined by it
	KeptUntil            time.Time // until when it is listed and counted
}

var invitationTable = tableOf[Invitation]("invitation")

// Invite stores an invitation.
func (js Joins) Invite(ctx context.Context, i Invitation) error {
	return invitationTable.put(ctx, js.tx, &i, "id")
}

// Invitation returns an invitation that is not used and has not expired; ErrNotFound when there is none.
func (js Joins) Invitation(ctx context.Context, hash [32]byte) (Invitation, error) {
	return find[Invitation](ctx, js.tx, invitationTable.from+invitationOfCode, hash[:], millis(js.tx.Now))
}

// Use spends an invitation; ErrNotFound when another request did.
func (js Joins) Use(ctx context.Context, id, handle string) error {
	return one(js.tx.write(ctx, `UPDATE invitation SET used_at = ?, became = ? WHERE id = ? AND used_at IS NULL`, millis(js.tx.Now), handle, id))
}

const invitedSince = `SELECT count(*) FROM invitation WHERE account = ? AND created_at > ?`

// CountInvited is how many invitations an account made since a time.
func (js Joins) CountInvited(ctx context.Context, account string, since time.Time) (int, error) {
	return find[int](ctx, js.tx, invitedSince, account, millis(since))
}

// Invitations lists the invitations of an account, newest first.
func (js Joins) Invitations(ctx context.Context, account string, limit int, after string) (protocol.Page[Invitation], error) {
	return newest[Invitation](ctx, js.tx, "invitations", "id", limit, after, invitationTable.from+invitationsOf, account)
}

const invitationsOf = `WHERE account = ? AND id < ? ORDER BY id DESC LIMIT ?`

// Withdraw deletes an invitation of an account that nobody has used; ErrNotFound when there is none.
func (js Joins) Withdraw(ctx context.Context, account, id string) error {
	return one(js.tx.write(ctx, `DELETE FROM invitation WHERE id = ? AND account = ? AND used_at IS NULL`, id, account))
}
