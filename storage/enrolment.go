package storage

import (
	"context"
	"fmt"
	"time"

	"stoa/protocol"
)

// An Enrolment ties a chain identity to a profile, with the state of the chain when
// it was made. docs/DESIGN.md, "Enrolments", says what ends it.
type Enrolment struct {
	Handle, ERC8004 string
	KeyID           string `db:",read"` // of the profile
	Owner           string // address in lower case; "" when the chain was not asked yet
	Wallet          string // the same; "" for none
	Block           uint64 // the newest final block at the time
	BlockHash       string
	MadeAt          time.Time
}

// bound reports whether the chain was asked when the enrolment was made.
func (e Enrolment) bound() bool { return e.Owner != "" }

// SameControl reports whether owner and wallet are those of the enrolment. One that
// was made without asking the chain has neither, so it is false.
func (e Enrolment) SameControl(owner, wallet string) bool {
	return e.bound() && e.Owner == owner && e.Wallet == wallet
}

const enrolments = `SELECT p.handle, p.erc8004, COALESCE(p.key_hash, '') AS key_id, COALESCE(e.owner, '') AS owner, COALESCE(e.wallet, '') AS wallet,
	COALESCE(e.block, 0) AS block, COALESCE(e.block_hash, '') AS block_hash, COALESCE(e.made_at, 0) AS made_at
	FROM profile p LEFT JOIN enrolment e ON e.handle = p.handle AND e.erc8004 = p.erc8004 AND e.ended_at IS NULL WHERE `

const enrolmentsOfRegistry = enrolments + `p.erc8004 > ? AND p.erc8004 < ? ORDER BY p.erc8004 LIMIT ?`

// Enrolments reads and writes the chain identities of profiles.
type Enrolments struct{ tx *Tx }

func (tx *Tx) Enrolments() Enrolments { return Enrolments{tx} }

// ByIdentity returns the enrolment of a chain identity in lower case;
// ErrNotFound when no profile has it.
func (es Enrolments) ByIdentity(ctx context.Context, erc8004 string) (Enrolment, error) {
	return find[Enrolment](ctx, es.tx, enrolments+`p.erc8004 = ?`, erc8004)
}

// List returns enrolments of one registry, eip155:<chainId>:<address>, in the order
// of their identities, those after a given one.
func (es Enrolments) List(ctx context.Context, registry, after string, limit int) ([]Enrolment, error) {
	after = max(after, registry+":")
	return list[Enrolment](ctx, es.tx, enrolmentsOfRegistry, after, registry+";", limit) // ; is the character after :
}

// An OwnedProfile is a profile of an account, enrolled to a chain identity of some owner.
type OwnedProfile struct{ Handle, ERC8004, Account string }

// OfOwner returns the profiles of accounts that are enrolled to identities of an owner, an
// address in lower case, in the order of their handles, at most n.
func (es Enrolments) OfOwner(ctx context.Context, owner string, n int) ([]OwnedProfile, error) {
	return list[OwnedProfile](ctx, es.tx, `SELECT e.handle, e.erc8004, a.account FROM enrolment e JOIN profile p ON p.handle = e.handle AND p.erc8004 = e.erc8004
		JOIN account_profile a ON a.handle = e.handle WHERE e.owner = ? AND e.ended_at IS NULL ORDER BY e.handle LIMIT ?`, owner, n)
}

// Last returns how the last enrolment of a profile ended; ErrNotFound when none has
// ended, or another was made since.
func (es Enrolments) Last(ctx context.Context, handle string) (e Enrolment, reason protocol.EnrolmentEnd, at time.Time, err error) {
	r, err := find[enrolmentRow](ctx, es.tx, enrolmentTable.from+`WHERE handle = ? AND ended_at IS NOT NULL`, handle)
	if err != nil {
		return Enrolment{Handle: handle}, "", time.Time{}, err
	}
	return r.Enrolment, r.Reason, *r.EndedAt, nil
}

// Begin ties an identity to a profile with the key that speaks for it. jwk is the
// key as the chain has it, which is registered with the profile if it is not yet;
// nil accepts only registered keys. An enrolment of the identity with another
// profile ends if it was made by another owner or wallet, otherwise the error is
// ErrExists. ErrKeyTaken when the key belongs to another profile, or was retired by
// its owner.
func (es Enrolments) Begin(ctx context.Context, actor string, e Enrolment, jwk []byte) error {
	p, err := es.tx.Profiles().ForUpdate(ctx, e.Handle)
	if err != nil {
		return err
	}
	switch old, err := es.ByIdentity(ctx, e.ERC8004); {
	case err == ErrNotFound || err == nil && old.Handle == e.Handle:
	case err != nil:
		return err
	case !old.bound() || !e.bound() || old.SameControl(e.Owner, e.Wallet):
		return ErrExists
	default:
		if err := es.End(ctx, actor, old, protocol.EndedByOwner); err != nil {
			return err
		}
	}
	if p.ERC8004 != "" && p.ERC8004 != e.ERC8004 {
		old, err := es.ByIdentity(ctx, p.ERC8004)
		if err != nil {
			return err
		}
		if err := es.End(ctx, actor, old, protocol.EndedByAnother); err != nil {
			return err
		}
		if p, err = es.tx.Profiles().ForUpdate(ctx, e.Handle); err != nil {
			return err
		}
	}
	if err := es.enrolKey(ctx, e, jwk); err != nil {
		return err
	}
	p.ERC8004, p.KeyHash = e.ERC8004, e.KeyID
	if _, err := es.tx.Profiles().PutAt(ctx, p, p.UpdatedAt); err != nil {
		return err
	}
	if e.MadeAt.IsZero() {
		e.MadeAt = es.tx.Now
	}
	if err := es.put(ctx, e, nil, ""); err != nil {
		return err
	}
	if err := es.tx.Feedbacks().Show(ctx, e.ERC8004, e.Handle, p.Shown()); err != nil {
		return err
	}
	return es.tx.Audit(ctx, actor, "identity put", e.Handle, e.ERC8004+" key "+e.KeyID)
}

// An enrolmentRow is the last enrolment of a profile.
type enrolmentRow struct {
	Enrolment
	EndedAt *time.Time
	Reason  protocol.EnrolmentEnd
}

var enrolmentTable = tableOf[enrolmentRow]("enrolment")

func (es Enrolments) put(ctx context.Context, e Enrolment, ended *time.Time, reason protocol.EnrolmentEnd) error {
	err := enrolmentTable.put(ctx, es.tx, &enrolmentRow{e, ended, reason}, "handle")
	if err == nil && ended != nil {
		return es.tx.AgentDocuments().Drop(ctx, e.ERC8004)
	}
	if err == nil {
		err = es.tx.AgentDocuments().begin(ctx, e.ERC8004)
	}
	if err != nil {
		return err
	}
	return es.tx.Feedbacks().enrolled(ctx, e)
}

// ErrKeyTaken is returned for a key that cannot become a profile's: another profile
// has it, or its owner retired it.
var ErrKeyTaken = fmt.Errorf("key is another profile's or retired")

// enrolKey gives the key the chain's authority. A key that was retired only by the
// end of an enrolment of the same identity is used again, also by another profile:
// the chain confirms it again.
func (es Enrolments) enrolKey(ctx context.Context, e Enrolment, jwk []byte) error {
	old, err := es.tx.Keys().ByThumbprint(ctx, e.KeyID)
	switch {
	case err == ErrNotFound && jwk == nil:
		return nil
	case err == ErrNotFound:
		return es.tx.Keys().Put(ctx, AgentKey{Handle: e.Handle, Thumbprint: e.KeyID, PublicJWK: jwk, Identity: e.ERC8004, OnChain: true})
	case err != nil:
		return err
	}
	ended := old.RetiredAt != nil && old.OnChain && old.Identity == e.ERC8004
	if (old.RetiredAt != nil || old.Handle != e.Handle) && !ended {
		return ErrKeyTaken
	}
	if old.Handle != e.Handle { // the other profile's private key and directory are deleted
		if _, err := es.tx.write(ctx, `UPDATE agent_key SET handle = ?, sealed = NULL, directory = NULL WHERE thumbprint = ?`, e.Handle, e.KeyID); err != nil {
			return err
		}
	}
	return es.tx.exec(ctx, `UPDATE agent_key SET retired_at = NULL, identity = ?, on_chain = ? WHERE thumbprint = ?`, e.ERC8004, true, e.KeyID)
}

// Bind stores the chain's owner and wallet in an enrolment that was made without
// asking the chain. ErrNotFound when the enrolment has changed.
func (es Enrolments) Bind(ctx context.Context, e Enrolment) error {
	if err := es.unchanged(ctx, Enrolment{Handle: e.Handle, ERC8004: e.ERC8004, KeyID: e.KeyID}); err != nil {
		return err
	}
	if e.MadeAt.IsZero() {
		e.MadeAt = es.tx.Now
	}
	return es.put(ctx, e, nil, "")
}

// unchanged locks the profile of an enrolment and returns ErrNotFound when its
// enrolment has changed: then what was found out about e does not apply.
func (es Enrolments) unchanged(ctx context.Context, e Enrolment) error {
	if _, err := es.tx.Profiles().lock(ctx, e.Handle); err != nil {
		return err
	}
	now, err := es.ByIdentity(ctx, e.ERC8004)
	if err == nil && (now.Handle != e.Handle || now.KeyID != e.KeyID || now.Owner != e.Owner || now.Wallet != e.Wallet || now.Block != e.Block) {
		return ErrNotFound
	}
	return err
}

// Drop ends the enrolment of a profile, if there is one, and what the keys of a key directory may do as it.
func (es Enrolments) Drop(ctx context.Context, actor string, p *StoredProfile) error {
	if err := es.tx.Joins().DropDirectory(ctx, p.Draft.Handle); err != nil || p.ERC8004 == "" {
		return err
	}
	e, err := es.ByIdentity(ctx, p.ERC8004)
	if err != nil {
		return err
	}
	return es.End(ctx, actor, e, protocol.EndedByDrop)
}

// End removes an identity from its profile, with the keys that came with it and what the
// feed told of its reviews, and notifies the owner. ErrNotFound when the enrolment has changed.
func (es Enrolments) End(ctx context.Context, actor string, e Enrolment, reason protocol.EnrolmentEnd) error {
	if err := es.unchanged(ctx, e); err != nil {
		return err
	}
	p, err := es.tx.Profiles().ForUpdate(ctx, e.Handle)
	if err != nil {
		return err
	}
	if _, err := es.tx.write(ctx, `UPDATE agent_key SET retired_at = COALESCE(retired_at, ?) WHERE handle = ? AND (identity = ? OR thumbprint = ?)`,
		millis(es.tx.Now), e.Handle, e.ERC8004, e.KeyID); err != nil {
		return err
	}
	p.ERC8004, p.KeyHash, p.IdentityNote = "", "", ""
	if _, err := es.tx.Profiles().PutAt(ctx, p, p.UpdatedAt); err != nil {
		return err
	}
	if err := es.put(ctx, e, &es.tx.Now, reason); err != nil {
		return err
	}
	if err := es.tx.Feedbacks().Show(ctx, e.ERC8004, e.Handle, false); err != nil {
		return err
	}
	if err := es.tx.Audit(ctx, actor, "identity end", e.Handle, e.ERC8004+": "+reason.Text()); err != nil {
		return err
	}
	if err := es.tx.Joins().sold(ctx, e.Handle, reason); err != nil {
		return err
	}
	return es.tx.Notify(ctx, protocol.Notice{Handle: e.Handle, Event: protocol.IdentityEnded, Subject: e.ERC8004, Title: reason.Text()})
}

// FollowRecord updates the enrolment to the record that its owner or wallet signed:
// keys are those it names now, preferred first; the first of them that can belong
// to the profile speaks for the identity. Keys that it no longer names end.
// ErrKeyTaken when none can belong to the profile.
func (es Enrolments) FollowRecord(ctx context.Context, e Enrolment, keys []EnrolledKey) error {
	if err := es.unchanged(ctx, e); err != nil {
		return err
	}
	moved := e
	moved.KeyID = ""
	for _, k := range keys {
		e.KeyID = k.Thumbprint
		err := es.enrolKey(ctx, e, k.JWK)
		if err == ErrKeyTaken {
			continue
		}
		if err != nil {
			return err
		}
		if moved.KeyID == "" {
			moved.KeyID = k.Thumbprint
		}
	}
	if moved.KeyID == "" {
		return ErrKeyTaken
	}
	all, err := es.tx.Keys().OfProfile(ctx, e.Handle)
	if err != nil {
		return err
	}
	for _, k := range all {
		named := false
		for _, n := range keys {
			named = named || n.Thumbprint == k.Thumbprint
		}
		if named || !k.OnChain || k.Identity != e.ERC8004 || k.RetiredAt != nil {
			continue
		}
		// The record may name it again.
		if _, err := es.tx.write(ctx, `UPDATE agent_key SET retired_at = ? WHERE thumbprint = ?`, millis(es.tx.Now), k.Thumbprint); err != nil {
			return err
		}
	}
	p, err := es.tx.Profiles().ForUpdate(ctx, e.Handle)
	if err != nil || p.KeyHash == moved.KeyID {
		return err
	}
	p.KeyHash = moved.KeyID
	if _, err := es.tx.Profiles().PutAt(ctx, p, p.UpdatedAt); err != nil {
		return err
	}
	return es.tx.Audit(ctx, "node", "identity key", e.Handle, e.ERC8004+" key "+moved.KeyID)
}

// An EnrolledKey is a key that the record of an identity names.
type EnrolledKey struct {
	Thumbprint string
	JWK        []byte
}
