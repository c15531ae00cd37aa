package archive

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

func (im *importing) storeMerchant(ctx context.Context, tx *storage.Tx, m *merchantRecord) error {
	if im.report.Profile == kept {
		return nil
	}
	n, err := tx.Items().Count(ctx, im.handle)
	if err != nil {
		return err
	}
	record := m.Record
	if n > protocol.MaxRecordItems { // too many to remove while others wait
		im.note("the profile here has %d items: those that the archive does not have stay", n)
		record.Items = nil
	}
	if err := tx.Merchants().PutAt(ctx, im.handle, record, notAfter(m.UpdatedAt, tx.Now)); err != nil {
		return err
	}
	if record.Items == nil && len(m.Record.Items) > 0 {
		return tx.Items().PutQuietly(ctx, im.handle, m.Record.Items...)
	}
	return tx.Merchants().SkipNews(ctx, im.handle)
}

// storeItem stores an item of a catalog that is too large for the record.
func (im *importing) storeItem(ctx context.Context, tx *storage.Tx, d protocol.ItemDraft) error {
	if im.report.Profile == kept {
		return nil
	}
	err := tx.Items().PutQuietly(ctx, im.handle, d)
	if errors.Is(err, storage.ErrFull) {
		im.note("the catalog is full: some items were left out")
		return nil
	}
	return err
}

// storeNotify stores where notices go. A mail address has to be confirmed again: nothing has shown
// this node that the owner can read it.
func (im *importing) storeNotify(ctx context.Context, tx *storage.Tx, n *protocol.NotifyDraft) error {
	if im.report.Profile == kept {
		return nil
	}
	old, err := tx.Profiles().NotifySettings(ctx, im.handle)
	if err != nil {
		return err
	}
	s := storage.NotifySettings{Handle: im.handle, Mail: n.Mail, Webhook: n.Webhook, Events: n.Events, Confirmed: old.Confirmed && old.Mail == n.Mail}
	if n.Webhook != "" {
		if why := protocol.CallbackFault(n.Webhook, im.Private); why != "" {
			s.Webhook = ""
			im.note("the webhook for notices was left out: its address %s", why)
		}
	}
	s.KeepLinks(old, im.By.May(protocol.ScopeAttention))
	if s.Mail != "" && !s.Confirmed {
		im.note("notices are mailed again after the address is confirmed here")
	}
	return tx.Profiles().PutNotifySettings(ctx, s)
}

// What an import does with the profile.
const (
	created  = "created"
	replaced = "replaced"
	kept     = "kept"
)

// checkMayImport decides whether the bearer may have the profile with that handle.
func (im *importing) checkMayImport(ctx context.Context, tx *storage.Tx) error {
	refused, err := tx.Blocks().Match(ctx, protocol.BlockHandle, im.handle)
	if err == nil && !refused {
		refused, err = tx.Blocks().Match(ctx, protocol.BlockAgent, protocol.AgentBlocks(im.erc8004, im.enrols.Owner)...)
	}
	if err != nil {
		return err
	} else if refused && !im.operator() {
		return protocol.Errorf(protocol.Forbidden, "the operator of this node has blocked this profile")
	}
	old, err := tx.Profiles().Own(ctx, im.handle)
	switch {
	case err == nil && old.Draft.Kind != im.profile.Draft.Kind:
		return protocol.Errorf(protocol.Conflict, "@%s is a %s here, and a profile cannot change its kind; choose another handle with as", im.handle, old.Draft.Kind)
	case err == nil && im.Replace:
		im.report.Profile = replaced
	case err == nil:
		im.report.Profile = kept
	case errors.Is(err, storage.ErrNotFound):
		im.report.Profile = created
	default:
		return err
	}
	if im.operator() {
		return nil
	}
	if one, err := tx.Tokens().Handle(ctx, im.By.Secret); err != nil {
		return err
	} else if one != "" && (one != im.handle || im.report.Profile == created) {
		return protocol.Errorf(protocol.Forbidden, "this token is only for @%s", one)
	}
	if im.report.Profile != created {
		owner, err := tx.Accounts().OfProfile(ctx, im.handle)
		if errors.Is(err, storage.ErrNotFound) || err == nil && owner.ID != im.By.Account {
			return protocol.Errorf(protocol.Conflict, "@%s belongs to another owner here; choose another handle with as", im.handle)
		}
		return err
	}
	if used, err := tx.Posts().HasAuthor(ctx, im.handle); err != nil {
		return err
	} else if used {
		return protocol.Errorf(protocol.Conflict, "@%s belonged to another owner here, whose posts still exist; choose another handle with as", im.handle)
	}
	handles, err := tx.Accounts().Handles(ctx, im.By.Account)
	if err == nil && len(handles) >= protocol.MaxProfiles {
		return protocol.Errorf(protocol.Conflict, "the account has %d profiles, which is the most it can have", len(handles))
	}
	if err != nil {
		return err
	}
	im.state, err = im.Admit(ctx, tx, im.By, im.handle)
	return err
}

func (im *importing) storeProfile(ctx context.Context, tx *storage.Tx) error {
	p := &storage.StoredProfile{Draft: im.profile.Draft, Unlisted: im.profile.Unlisted, State: im.state}
	old, err := tx.Profiles().ForUpdate(ctx, im.handle)
	if err == nil {
		p.ERC8004, p.KeyHash, p.IdentityNote = old.ERC8004, old.KeyHash, old.IdentityNote
		if im.report.Profile == kept {
			*p = *old
		}
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err := im.enrolment(ctx, tx, p); err != nil || im.report.Profile == kept {
		return err
	}
	written := notAfter(im.profile.UpdatedAt, tx.Now)
	if _, err := tx.Profiles().PutAt(ctx, p, written); err != nil {
		return err
	}
	if im.report.Profile != created {
		return nil
	}
	account := im.By.Account
	if im.operator() {
		account = im.Account
	} else if err := im.Admitted(ctx, tx, im.By); err != nil {
		return err
	}
	if im.state == protocol.ProfilePending {
		im.note("the profile waits for an operator of this node to approve it")
	}
	if account != "" {
		if err := tx.Accounts().LinkProfile(ctx, account, im.handle); err != nil {
			return err
		}
	}
	return tx.Merchants().SkipNews(ctx, im.handle)
}

// enrolled is the report's word for an identity that is enrolled with the import.
const enrolled = "enrolled"

// enrolment decides whether the chain identity is to be enrolled.
func (im *importing) enrolment(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile) error {
	if im.profile.ERC8004 == "" {
		return nil
	}
	leftOut := func(format string, args ...any) error {
		im.report.Identity = "left-out"
		im.note("the chain identity was left out: "+format, args...)
		return nil
	}
	if im.erc8004 == "" {
		return leftOut("%s", im.refusal)
	}
	switch other, err := tx.Enrolments().ByIdentity(ctx, im.erc8004); {
	case err == nil && other.Handle != im.handle:
		// The other owner's enrolment ends with this one.
		if other.Owner == "" || other.SameControl(im.enrols.Owner, im.enrols.Wallet) {
			return leftOut("another profile here is enrolled with it")
		}
	case err == nil && p.KeyHash == im.profile.KeyID, err == nil && im.report.Profile == kept:
		im.report.Identity = kept
		return nil
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return err
	}
	if p.ERC8004 != "" && im.report.Profile == kept {
		return leftOut("the profile here is enrolled with another")
	}
	im.report.Identity = enrolled
	return nil
}

// enrol enrols the identity once the profile and its keys are stored.
func (im *importing) enrol(ctx context.Context, tx *storage.Tx) error {
	if im.report.Identity != enrolled {
		return nil
	}
	e := im.enrols
	e.Handle = im.handle
	err := tx.Enrolments().Begin(ctx, im.By.Actor(), e, im.enrolsKey)
	if errors.Is(err, storage.ErrKeyTaken) {
		im.report.Identity = "left-out"
		im.note("the chain identity was left out: its key belongs to another profile here, or was retired")
		return nil
	}
	return err
}

// maxKeys is how many keys an archive may hold, retired ones included.
const maxKeys = 1000

// key reads and remembers one key.
func (im *importing) key(r record) (keyRecord, key.Public, error) {
	var k keyRecord
	if err := im.decode(r, &k); err != nil {
		return k, key.Public{}, err
	}
	raw, err := json.Marshal(k.JWK)
	if err != nil {
		return k, key.Public{}, err
	}
	public, err := key.ParsePublic(raw)
	if err != nil || key.IsPublicTestKey(public.Thumbprint) || r.n > maxKeys {
		return k, key.Public{}, refused("%s, record %d: not a valid public key of a kind that this node accepts", r.file, r.n)
	}
	im.public[public.Thumbprint] = public.Key
	return k, public, nil
}

func (im *importing) storeKey(ctx context.Context, tx *storage.Tx, k keyRecord, public key.Public) error {
	if blocked, err := tx.Blocks().Match(ctx, protocol.BlockKey, public.Thumbprint); err != nil {
		return err
	} else if blocked {
		im.report.Keys.LeftOut++
		im.note("a key was left out: the operator of this node has blocked it")
		return nil
	}
	old, err := tx.Keys().ByThumbprint(ctx, public.Thumbprint)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err == nil && old.Handle != im.handle {
		im.report.Keys.LeftOut++
		im.note("a key was left out: it is registered with another profile here")
		return nil
	}
	stored := storage.AgentKey{Handle: im.handle, Thumbprint: public.Thumbprint, CreatedAt: notAfter(k.CreatedAt, tx.Now), RetiredAt: k.RetiredAt}
	if err == nil {
		stored = *old
		im.report.Keys.Same++
	} else {
		if k.RetiredAt == nil {
			if full, err := im.keysFull(ctx, tx); err != nil || full {
				return err
			}
		} else {
			stored.RetiredAt = new(notAfter(*k.RetiredAt, tx.Now))
		}
		im.setGrant(&stored, k, tx.Now)
		if stored.PublicJWK, err = key.MarshalPublic(public); err != nil {
			return err
		}
		im.report.Keys.New++
	}
	pair, came := im.private[public.Thumbprint]
	switch {
	case came && stored.Sealed != nil:
		im.report.PrivateKeys.Same++
	case came:
		if stored.Sealed, err = im.Seal(im.handle, pair); err != nil {
			return err
		}
		im.report.PrivateKeys.New++
	case k.Kept && stored.Sealed == nil:
		im.report.PrivateKeys.LeftOut++
		im.note("private keys were left out: they are not in the archive, or no passphrase was given")
	}
	return tx.Keys().Put(ctx, stored)
}

// setGrant notes the identity that a new key depends on. When that identity is not enrolled, the
// key is retired.
func (im *importing) setGrant(stored *storage.AgentKey, k keyRecord, now time.Time) {
	stored.Identity, stored.OnChain = strings.ToLower(k.Identity), k.OnChain && k.Identity != ""
	if stored.Identity == "" && im.profile.ERC8004 != "" && stored.Thumbprint == im.profile.KeyID { // archives of older nodes do not note this
		stored.Identity, stored.OnChain = strings.ToLower(im.profile.ERC8004), true
	}
	if stored.Identity == "" || stored.RetiredAt != nil || stored.Identity == im.erc8004 && (im.report.Identity == enrolled || im.report.Identity == kept) {
		return
	}
	stored.RetiredAt = &now
	im.note("keys that depend on the chain identity are retired here, because it was left out")
}

func (im *importing) keysFull(ctx context.Context, tx *storage.Tx) (bool, error) {
	all, err := tx.Keys().OfProfile(ctx, im.handle)
	inUse := 0
	for _, k := range all {
		if k.RetiredAt == nil {
			inUse++
		}
	}
	if err == nil && inUse >= protocol.MaxKeys {
		im.report.Keys.LeftOut++
		im.note("keys were left out: a profile has at most %d in use", protocol.MaxKeys)
		return true, nil
	}
	return false, err
}

// notAfter returns a time that an archive claims, in whole milliseconds and not later than now.
func notAfter(claimed, now time.Time) time.Time {
	claimed = claimed.UTC().Truncate(time.Millisecond)
	if claimed.After(now) || claimed.Before(time.Unix(1e9, 0)) {
		return now
	}
	return claimed
}
