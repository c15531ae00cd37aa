package account

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

var errNoBrowser = protocol.Errorf(protocol.Forbidden, "a token cannot do this: sign in with a browser")

// recent refuses a caller whose session did not begin lately: a browser that was left open, or a
// stolen cookie, must not become a way to sign in that its owner does not know. Tokens are refused.
func (a *Accounts) recent(ctx context.Context, tx *storage.Tx, c protocol.Caller) (storage.Session, error) {
	if !protocol.IsID(protocol.SessionID, c.Secret) {
		return storage.Session{}, errNoBrowser
	}
	s, err := tx.Sessions().ByID(ctx, c.Secret)
	if err != nil {
		return s, missing(err, "the session has ended")
	}
	if tx.Now.Sub(s.CreatedAt) > session.Recent {
		return s, protocol.Errorf(protocol.SignInAgain, "this browser signed in at %s, which is more than 15 minutes ago; sign in again, then repeat it",
			s.CreatedAt.UTC().Format("2 Jan 2006, 15:04 UTC"))
	}
	return s, nil
}

// Recent refuses a caller whose session did not begin lately, or that is a token.
func (a *Accounts) Recent(ctx context.Context, tx *storage.Tx, c protocol.Caller) error {
	_, err := a.recent(ctx, tx, c)
	return err
}

// Connected tells the owner that a profile was connected to a chain identity.
func (a *Accounts) Connected(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) error {
	return a.changed(ctx, tx, c.Actor(), c.Account, IdentityConnected, handle, "@"+handle)
}

// Methods returns how the account signs in.
func (a *Accounts) Methods(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (out protocol.SignInMethods, err error) {
	acc, err := tx.Accounts().ByID(ctx, c.Account)
	if err != nil {
		return out, err
	}
	if acc.Mail != "" {
		out.Mail = &acc.Mail
	}
	out.MailOffered = a.Mail != nil
	if a.Site != nil {
		out.PasskeyDomain = &a.Site.Domain
	}
	keys, err := tx.Passkeys().OfAccount(ctx, c.Account, protocol.MaxPasskeys)
	if err != nil {
		return out, err
	}
	out.Passkeys = make([]protocol.Passkey, 0, len(keys))
	for _, k := range keys {
		out.Passkeys = append(out.Passkeys, public(k))
	}
	if out.RecoveryCodes, out.RecoveryCodesMadeAt, err = tx.RecoveryCodes().Left(ctx, c.Account); err != nil {
		return out, err
	}
	if acc.Wallet != "" {
		out.Wallet = &acc.Wallet
	}
	out.Ethereum = []protocol.EthereumOwner{}
	for _, handle := range c.Handles {
		p, err := tx.Profiles().Own(ctx, handle)
		if err != nil {
			return out, err
		}
		if p.ERC8004 == "" || a.Chain == nil {
			continue
		}
		e, err := tx.Enrolments().ByIdentity(ctx, p.ERC8004)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return out, err
		}
		if e.Owner != "" {
			out.Ethereum = append(out.Ethereum, protocol.EthereumOwner{Handle: handle, ERC8004: e.ERC8004, Owner: e.Owner})
		}
	}
	if s, err := a.recent(ctx, tx, c); s.ID != "" {
		out.SignedInAt, out.Recent = &s.CreatedAt, err == nil
	}
	return out, nil
}

func public(k storage.Passkey) protocol.Passkey {
	return protocol.Passkey{ID: k.ID, Name: k.Name, Domain: k.Domain, BackedUp: k.BackedUp, Suspect: k.Suspect, CreatedAt: k.CreatedAt, LastUsedAt: k.LastUsedAt}
}

// PasskeyOptions returns what a browser needs to make a passkey.
func (a *Accounts) PasskeyOptions(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (out protocol.PasskeyOptions, err error) {
	s, acc, keys, err := a.mayAdd(ctx, tx, c)
	if err != nil {
		return out, err
	}
	out = protocol.PasskeyOptions{
		Challenge: a.Challenges.New(session.NewPasskey, s.ID, tx.Now), Domain: a.Site.Domain, Site: a.Name, User: acc.ID, Name: acc.Name,
		Algorithms: passkey.Algorithms(), Exclude: []string{},
	}
	if acc.Mail != "" {
		out.Name = acc.Mail
	}
	for _, k := range keys {
		if k.Domain == a.Site.Domain {
			out.Exclude = append(out.Exclude, base64.RawURLEncoding.EncodeToString(k.Credential))
		}
	}
	return out, nil
}

// mayAdd refuses a passkey that cannot be added now, whatever it is.
func (a *Accounts) mayAdd(ctx context.Context, tx *storage.Tx, c protocol.Caller) (s storage.Session, acc storage.Account, keys []storage.Passkey, err error) {
	if s, err = a.recent(ctx, tx, c); err != nil {
		return s, acc, nil, err
	}
	if a.Site == nil {
		return s, acc, nil, protocol.Errorf(protocol.Conflict, "%w: sign in by mail, or open the node under its domain name", passkey.ErrNoDomain)
	}
	if acc, err = tx.Accounts().ByID(ctx, c.Account); err != nil {
		return s, acc, nil, err
	}
	keys, err = tx.Passkeys().OfAccount(ctx, c.Account, protocol.MaxPasskeys)
	if err == nil && len(keys) >= protocol.MaxPasskeys {
		err = protocol.Errorf(protocol.Conflict, "the account has %d passkeys, which is the most it can have; remove one first", len(keys))
	}
	return s, acc, keys, err
}

// errChallenge is the error of a challenge that is not valid here and now.
var errChallenge = protocol.Errorf(protocol.Gone, "this took longer than ten minutes, or was begun in another browser; begin again")

// AddPasskey stores a passkey that a browser made.
func (a *Accounts) AddPasskey(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewPasskey) (out protocol.Passkey, err error) {
	if _, err := tx.Accounts().ForUpdate(ctx, c.Account); err != nil { // two at once would pass the bound
		return out, err
	}
	s, acc, _, err := a.mayAdd(ctx, tx, c)
	if err != nil {
		return out, err
	}
	k, err := a.keepPasskey(ctx, tx, s.ID, acc.ID, in)
	if err != nil {
		return out, err
	}
	return public(k), a.changed(ctx, tx, c.Actor(), acc.ID, PasskeyAdded, k.ID, k.Name)
}

// keepPasskey stores a passkey of an account, which a browser made for a challenge that is bound to what it is made with.
func (a *Accounts) keepPasskey(ctx context.Context, tx *storage.Tx, bound, account string, in protocol.NewPasskey) (k storage.Passkey, err error) {
	challenge := passkey.Challenge(in.ClientData)
	key, until, ok := a.Challenges.Check(challenge, session.NewPasskey, bound, tx.Now)
	if !ok {
		return k, errChallenge
	}
	made, err := a.Site.Register(account, challenge, passkey.Registration{ID: in.Credential, ClientData: in.ClientData, Attestation: in.Attestation})
	if err != nil {
		return k, &protocol.Error{Code: protocol.InvalidRequest, Err: err,
			Detail: "the passkey does not verify; add it again, with a device that asks for a finger, a face or a PIN"}
	}
	if err := tx.Requests().Spend(ctx, protocol.Spend{Key: key, Until: until, Code: protocol.Gone}); err != nil {
		return k, err
	}
	k = storage.Passkey{
		ID: protocol.NewID(protocol.PasskeyID, tx.Now), Account: account, Name: in.Name, Credential: made.ID, Domain: a.Site.Domain, PublicKey: made.Key,
		Count: made.Count, BackupEligible: made.BackupEligible, BackedUp: made.BackedUp, Transports: in.Transports, CreatedAt: tx.Now,
	}
	err = tx.Passkeys().Insert(ctx, k)
	if errors.Is(err, storage.ErrExists) {
		err = protocol.Errorf(protocol.Conflict, "this passkey is there already")
	}
	return k, err
}

// DeletePasskey removes a passkey.
func (a *Accounts) DeletePasskey(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PasskeyRef) (protocol.None, error) {
	if _, err := a.recent(ctx, tx, c); err != nil {
		return protocol.None{}, err
	}
	keys, err := tx.Passkeys().OfAccount(ctx, c.Account, protocol.MaxPasskeys)
	if err != nil {
		return protocol.None{}, err
	}
	at := slices.IndexFunc(keys, func(k storage.Passkey) bool { return k.ID == in.ID })
	if at < 0 {
		return protocol.None{}, protocol.Errorf(protocol.NotFound, "the account has no passkey with that id")
	}
	if err := tx.Passkeys().Delete(ctx, c.Account, in.ID); err != nil {
		return protocol.None{}, missing(err, "the account has no passkey with that id")
	}
	return protocol.None{}, a.changed(ctx, tx, c.Actor(), c.Account, PasskeyRemoved, in.ID, keys[at].Name)
}

// RemoveWallet has the Ethereum account of an account sign in no more.
func (a *Accounts) RemoveWallet(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.None, error) {
	if _, err := a.recent(ctx, tx, c); err != nil {
		return protocol.None{}, err
	}
	acc, err := tx.Accounts().ForUpdate(ctx, c.Account)
	if err == nil && acc.Wallet == "" {
		err = protocol.Errorf(protocol.NotFound, "no Ethereum account signs in to this account by itself")
	}
	if err == nil {
		err = tx.Accounts().SetWallet(ctx, acc.ID, "")
	}
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, a.changed(ctx, tx, c.Actor(), acc.ID, WalletRemoved, acc.Wallet, acc.Wallet)
}

// MakeRecoveryCodes makes recovery codes instead of those that there were.
func (a *Accounts) MakeRecoveryCodes(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (out protocol.MadeCodes, err error) {
	if _, err := a.recent(ctx, tx, c); err != nil {
		return out, err
	}
	if _, err := tx.Accounts().ForUpdate(ctx, c.Account); err != nil { // of two at once the later one's stay
		return out, err
	}
	hashes := make([][32]byte, protocol.RecoveryCodes)
	for i := range hashes {
		var code string
		code, hashes[i] = session.NewCode()
		out.Codes = append(out.Codes, code)
	}
	if err := tx.RecoveryCodes().Replace(ctx, c.Account, hashes); err != nil {
		return protocol.MadeCodes{}, err
	}
	return out, a.changed(ctx, tx, c.Actor(), c.Account, CodesMade, c.Account, "")
}

// EndOtherSessions signs every other browser out.
func (a *Accounts) EndOtherSessions(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (out protocol.SignedOut, err error) {
	if out.Ended, err = tx.Sessions().EndAll(ctx, c.Account, c.Secret); err != nil {
		return out, err
	}
	return out, tx.Audit(ctx, c.Actor(), "session end", c.Account, fmt.Sprintf("%d others", out.Ended))
}

// A Change is something that happened to how an account signs in, or to who speaks for a profile of it.
type Change string

const (
	PasskeyAdded   Change = "passkey add"
	PasskeyRemoved Change = "passkey remove"
	PasskeyCopied  Change = "passkey suspect"
	CodesMade      Change = "recovery codes make"
	CodeUsed       Change = "recovery code use"

	IdentityConnected Change = "identity connect"
	WalletRemoved     Change = "wallet remove"

	ProfileLeaves Change = "profile leave"
	AccountLeaves Change = "account leave"

	BackupFailed Change = "backup failed" // to operators, as the next two
	BackupLate   Change = "backup late"
	BackupWorks  Change = "backup works"
)

// told are subject and first paragraph of the letter about a change, with the passkey's name.
var told = map[Change][2]string{
	PasskeyAdded: {hall.Key("A passkey was added at %s"),
		hall.Key("A passkey%s was added to your account at %s, on %s. It signs in to the account from now on.")},
	PasskeyRemoved: {hall.Key("A passkey was removed at %s"), hall.Key("A passkey%s was removed from your account at %s, on %s.")},
	PasskeyCopied: {hall.Key("A passkey may have been copied at %s"),
		hall.Key("A passkey%s of your account at %s was used on %s, and its counter went back, as it does where a copy is " +
			"used. Nobody was signed in, and this passkey signs nobody in any more. Remove it, and add another.")},
	WalletRemoved: {hall.Key("An Ethereum account was removed at %s"),
		hall.Key("The Ethereum account%s was removed from your account at %s, on %s. It signs in no more.")},
	CodesMade: {hall.Key("Recovery codes were made at %s"),
		hall.Key("New recovery codes%s were made for your account at %s, on %s. The former ones have ended.")},
	IdentityConnected: {hall.Key("An identity was connected at %s"),
		hall.Key("A profile of yours%s at %s was connected to an identity on a blockchain, on %s. Who owns that identity " +
			"speaks for the profile from now on. You can remove it under “Keys and identity”.")},
	ProfileLeaves: {hall.Key("Your profile at %s is being deleted"), hall.Key("The profile%s at %s was deleted by its owner on %s. Nobody sees it now.")},
	AccountLeaves: {hall.Key("Your account at %s is being closed"),
		hall.Key("Your account%s at %s was closed on %s. Its profiles are hidden, and every browser is signed out.")},
	CodeUsed:     {hall.Key("A recovery code was used at %s"), hall.Key("A recovery code%s signed in to your account at %s, on %s.")},
	BackupFailed: {hall.Key("The backup of %s failed"), hall.Key("The backup%s of the node %s failed on %s.")},
	BackupLate: {hall.Key("There is no backup of %s of the last two days"),
		hall.Key("No backup%s of the node %s was finished for two days, as seen on %s: each try was cut off, or one still runs.")},
	BackupWorks: {hall.Key("The backup of %s works again"), hall.Key("A backup%s of the node %s was made on %s: it works again.")},
}

// changed notes a change in the audit log, and tells the owner.
func (a *Accounts) changed(ctx context.Context, tx *storage.Tx, actor, account string, what Change, subject, name string) error {
	args, err := json.Marshal(security{Account: account, What: what, Name: name, At: tx.Now})
	if err != nil {
		return err
	}
	if err := tx.Enqueue(ctx, storage.Job{Kind: storage.SecurityJob, Lane: letterLane, Args: args}); err != nil {
		return err
	}
	return tx.Audit(ctx, actor, string(what), subject, name)
}

// TellOfBackups tells the operators that backups of the node do not work, or that they do again.
func TellOfBackups(ctx context.Context, tx *storage.Tx, s storage.BackupState, works bool) error {
	in := security{What: BackupLate, At: tx.Now, Why: s.LastError}
	if in.Why != "" {
		in.What = BackupFailed
	}
	if works {
		in.What, in.Name = BackupWorks, s.Name
	}
	operators, err := tx.Accounts().Operators(ctx)
	for _, acc := range operators {
		in.Account = acc.ID
		args, err := json.Marshal(in)
		if err != nil {
			return err
		}
		if err := tx.Enqueue(ctx, storage.Job{Kind: storage.SecurityJob, Lane: letterLane, Args: args}); err != nil {
			return err
		}
	}
	return err
}

// security is the arguments of SecurityJob.
type security struct {
	Account string    `json:"account"`
	What    Change    `json:"what"`
	Name    string    `json:"name,omitempty"`
	At      time.Time `json:"at"`
	Handle  string    `json:"handle,omitempty"` // with ProfileLeaves
	Until   time.Time `json:"until,omitzero"`   // until when that can be undone
	Why     string    `json:"why,omitempty"`    // with BackupFailed, what was wrong
	trial
}

// Leaves tells the owner that a profile, or with handle "" the account, is hidden, and how that is undone.
func (a *Accounts) Leaves(ctx context.Context, tx *storage.Tx, account, handle string, until time.Time) error {
	s := security{Account: account, What: AccountLeaves, At: tx.Now, Handle: handle, Until: until}
	if handle != "" {
		s.What, s.Name = ProfileLeaves, "@"+handle
	}
	args, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.SecurityJob, Lane: letterLane, Args: args})
}

// advice is the second paragraph of the letter.
func (a *Accounts) advice(l hall.Words, in security) string {
	until := l.Time(in.Until.UTC(), "2 Jan 2006, 15:04 UTC")
	switch in.What {
	case ProfileLeaves:
		return l.Text("Until %s you can undo this: sign in and open %s. After that it is gone here, and other servers are told to delete what they have of it.",
			until, a.Base+"/account/leave?handle="+in.Handle)
	case AccountLeaves:
		return l.Text("Until %s you can undo this: sign in again at %s, and everything is back. "+
			"After that the account and its profiles are gone here, and other servers are told to delete what they have of them.", until, a.Base+"/sign-in")
	}
	health := a.Base + "/account/node"
	switch in.What {
	case BackupFailed:
		return l.Text("What was wrong: %s", plain(in.Why, 500)) + "\n\n" + again(l, health)
	case BackupLate:
		return again(l, health)
	case BackupWorks:
		return health
	}
	return l.Text("If it was not you: sign in, sign out the other browsers, remove passkeys that are not yours and renew the recovery codes at %s. "+
		"If you cannot sign in, tell the operator of the node.", a.Base+"/account/security")
}

func again(l hall.Words, health string) string {
	return l.Text("It is tried again by itself. What is known of it is on the page Health, and you are told when it works again: %s", health)
}

// SendSecurity is the handler of SecurityJob. The letter goes to the account's address, otherwise to
// a confirmed one for notices about one of its profiles.
func (a *Accounts) SendSecurity(ctx context.Context, j storage.Job, in security) (func(context.Context, *storage.Tx) error, error) {
	if a.Mail == nil {
		return nil, nil
	}
	text, known := told[in.What]
	if !known {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the job names no change")
	}
	var to, undo string
	var l hall.Words
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		acc, err := tx.Accounts().ByID(ctx, in.Account)
		l = a.Words(acc.Language)
		if err == nil {
			to, err = mailOf(ctx, tx, acc)
		}
		if to == "" && in.Handle != "" && storage.Missing(err, nil) == nil {
			s, wrong := tx.Profiles().NotifySettings(ctx, in.Handle)
			if err = wrong; s.Confirmed {
				to = s.Mail
			}
		}
		if err == nil && (in.What == ProfileLeaves || in.What == AccountLeaves) {
			undo, err = a.UndoLink(ctx, tx, cmp.Or(in.Handle, in.Account))
		}
		return err
	})
	if err != nil || to == "" {
		return nil, storage.Missing(err, nil)
	}
	name := in.Name
	if name != "" {
		name = " (“" + plain(name, 60) + "”)"
	}
	said := []string{l.Text(text[1], name, a.Base, l.Time(in.At.UTC(), "2 Jan 2006, 15:04 UTC")), a.advice(l, in)}
	if undo != "" {
		said = append(said, l.Text("Or open this link, which undoes it without signing in. It works once:"), undo)
	}
	err = a.Mail.Send(ctx, Letter{ID: letterID(j), To: to, Subject: l.Text(text[0], a.Name), Text: paragraphs(said...)})
	if err != nil {
		return retry(j, forADay, &in.trial, &in, err)
	}
	return nil, nil
}

func mailOf(ctx context.Context, tx *storage.Tx, acc storage.Account) (string, error) {
	if acc.Mail != "" {
		return acc.Mail, nil
	}
	handles, err := tx.Accounts().Handles(ctx, acc.ID)
	if err != nil {
		return "", err
	}
	for _, h := range handles {
		if s, err := tx.Profiles().NotifySettings(ctx, h); err != nil || s.Mail != "" && s.Confirmed {
			return s.Mail, err
		}
	}
	return "", nil
}
