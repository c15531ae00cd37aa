package account

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

const (
	askedAtOnce = 3                  // codes of one account or profile that are good at a time
	tellFor     = 7 * 24 * time.Hour // how long a former address is kept to be told, at most
)

// GetMail returns the address to which sign-in links are sent.
func (a *Accounts) GetMail(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.AccountMail, error) {
	acc, err := tx.Accounts().ByID(ctx, c.Account)
	return a.address(acc), err
}

func (a *Accounts) address(acc storage.Account) protocol.AccountMail {
	out := protocol.AccountMail{MailOffered: a.Mail != nil}
	if acc.Mail != "" {
		out.Mail = &acc.Mail
	}
	if acc.AskedMail != "" {
		out.Asked = &acc.AskedMail
	}
	return out
}

// PutMail stores the address that an owner wants and sends a code to it. Nothing
// else changes before the code is confirmed.
func (a *Accounts) PutMail(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountMailDraft) (protocol.AccountMail, error) {
	acc, err := tx.Accounts().ForUpdate(ctx, c.Account)
	if err != nil {
		return protocol.AccountMail{}, err
	}
	if err := a.mayMove(ctx, tx, c, acc); err != nil {
		return protocol.AccountMail{}, err
	}
	if in.Mail == "" {
		return a.moved(ctx, tx, c.Actor(), acc, "")
	}
	wanted, err := protocol.ParseMail(in.Mail)
	if err != nil {
		return protocol.AccountMail{}, err
	}
	if a.Mail == nil {
		return protocol.AccountMail{}, protocol.Errorf(protocol.Conflict, "this node sends no mail, so that no address can be confirmed; its operator can set one")
	}
	acc.AskedMail = wanted
	if wanted == acc.Mail {
		acc.AskedMail = ""
	}
	if err := tx.Accounts().SetPendingMail(ctx, acc.ID, acc.AskedMail); err != nil || acc.AskedMail == "" {
		return a.address(acc), err
	}
	if sent, err := mayAsk(ctx, tx, storage.TicketAccountMail, acc.ID, wanted); err != nil || sent {
		return a.address(acc), err
	}
	if err := tx.Audit(ctx, c.Actor(), "account mail ask", acc.ID, ""); err != nil {
		return protocol.AccountMail{}, err
	}
	args, err := json.Marshal(letter{Account: acc.ID})
	if err != nil {
		return protocol.AccountMail{}, err
	}
	return a.address(acc), tx.Enqueue(ctx, storage.Job{Kind: storage.AddressJob, Lane: letterLane, Args: args, Dedupe: string(storage.AddressJob) + " " + acc.ID})
}

// mayMove refuses a token with fewer rights than the account, and a session that did not begin
// lately: a reader of the account's mail can sign in, and neither must be a way to more rights.
func (a *Accounts) mayMove(ctx context.Context, tx *storage.Tx, c protocol.Caller, acc storage.Account) error {
	if !protocol.IsID(protocol.TokenID, c.Secret) {
		_, err := a.recent(ctx, tx, c)
		return err
	}
	t, err := tx.Tokens().ByID(ctx, c.Secret)
	if err != nil {
		return err
	}
	whole := t.ExpiresAt == nil && t.Handle == ""
	for _, s := range scopesOf(acc.Role) {
		whole = whole && c.May(s)
	}
	if !whole {
		return protocol.Errorf(protocol.Forbidden,
			"this token has fewer rights than the account, whose mail address gives access to everything: sign in with a browser, or use a token "+
				"with every scope that does not expire")
	}
	return nil
}

// mayAsk reports sent when a code was sent to the address less than [askEvery] ago:
// nobody can cause more mail to another's address. The error is rate-limited when
// owner, an account or profile, has had codes sent to too many addresses.
func mayAsk(ctx context.Context, tx *storage.Tx, purpose storage.TicketPurpose, owner, mail string) (sent bool, err error) {
	n, err := tx.Tickets().CountTo(ctx, purpose, mail, tx.Now.Add(session.TicketLifetime-askEvery))
	if err != nil || n > 0 {
		return n > 0, err
	}
	if n, err = tx.Tickets().CountOf(ctx, purpose, owner); err != nil || n < askedAtOnce {
		return false, err
	}
	return false, &protocol.Error{Code: protocol.RateLimited, Detail: "codes were sent to several addresses in the last half an hour; wait for a while",
		RetryAfter: askEvery}
}

// SendAddressCode is the handler of AddressJob.
func (a *Accounts) SendAddressCode(ctx context.Context, j storage.Job, in letter) (func(context.Context, *storage.Tx) error, error) {
	if a.Mail == nil {
		return nil, nil
	}
	secret, hash := session.New(session.Ticket)
	var acc storage.Account
	var late bool
	err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if acc, err = tx.Accounts().ByID(ctx, in.Account); err != nil || acc.AskedMail == "" {
			return err
		}
		late, err = sentLately(ctx, tx, j, in, storage.TicketAccountMail, acc.AskedMail, askEvery)
		if err != nil || late {
			return err
		}
		return tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketAccountMail, Account: acc.ID, Mail: acc.AskedMail,
			ExpiresAt: tx.Now.Add(session.TicketLifetime)})
	})
	if err != nil || acc.AskedMail == "" || late {
		return nil, storage.Missing(err, nil)
	}
	l := a.Words(acc.Language)
	return a.sendWaiting(ctx, j, in, Letter{ID: letterID(j), To: acc.AskedMail, Subject: l.Text("Confirm this address for your account"), Text: paragraphs(
		l.Text("An account at %s is to have this address. If it is yours, open this link within 30 minutes:", a.Base),
		a.Base+"/account/settings?code="+secret,
		l.Text("Or enter this code on the page “Name and mail” of your account:"),
		secret,
		l.Text("If that is not you, ignore this mail: nothing happens without the code."),
	)})
}

// ConfirmAccountMail makes a confirmed address the account's.
func (a *Accounts) ConfirmAccountMail(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountMailCode) (protocol.AccountMail, error) {
	hash, ok := session.Hash(session.Ticket, in.Code)
	if !ok {
		return protocol.AccountMail{}, ErrCode
	}
	acc, err := tx.Accounts().ForUpdate(ctx, c.Account)
	if err != nil {
		return protocol.AccountMail{}, err
	}
	t, err := tx.Tickets().ByHash(ctx, hash)
	if err != nil || t.Purpose != storage.TicketAccountMail || t.Account != acc.ID || t.Mail != acc.AskedMail {
		return protocol.AccountMail{}, storage.Missing(err, ErrCode)
	}
	return a.moved(ctx, tx, c.Actor(), acc, t.Mail)
}

// moved sets another address of the account, "" for none. Pending codes, and links
// that were sent to the former address, become invalid; the former address is
// notified.
func (a *Accounts) moved(ctx context.Context, tx *storage.Tx, actor string, acc storage.Account, mail string) (protocol.AccountMail, error) {
	former := acc.Mail
	err := tx.Accounts().SetMail(ctx, acc.ID, mail)
	if errors.Is(err, storage.ErrExists) {
		return protocol.AccountMail{}, protocol.Errorf(protocol.Conflict, "another account has this address")
	}
	if err != nil {
		return protocol.AccountMail{}, err
	}
	acc.Mail, acc.AskedMail = mail, ""
	if err := tx.Tickets().Drop(ctx, acc.ID, storage.TicketAccountMail); err != nil || former == mail {
		return a.address(acc), err
	}
	if former != "" {
		if err := enqueueFormerNotice(ctx, tx, acc.ID, former); err != nil {
			return protocol.AccountMail{}, err
		}
	}
	return a.address(acc), tx.Audit(ctx, actor, "account mail", acc.ID, "")
}

// enqueueFormerNotice queues the letter to a former address. A job holds no address, so the
// address is stored with the one-time secrets, which expire.
func enqueueFormerNotice(ctx context.Context, tx *storage.Tx, account, former string) error {
	if err := tx.Tickets().DropTo(ctx, account, storage.TicketSignIn, former); err != nil {
		return err
	}
	_, hash := session.New(session.Ticket)
	if err := tx.Tickets().Insert(ctx,
		storage.Ticket{Hash: hash, Purpose: storage.TicketFormerMail, Account: account, Mail: former, ExpiresAt: tx.Now.Add(tellFor)},
	); err != nil {
		return err
	}
	args, err := json.Marshal(letter{Account: account, Ticket: hex.EncodeToString(hash[:])})
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.FormerJob, Lane: letterLane, Args: args})
}

// NotifyFormer is the handler of FormerJob.
func (a *Accounts) NotifyFormer(ctx context.Context, j storage.Job, in letter) (func(context.Context, *storage.Tx) error, error) {
	if a.Mail == nil {
		return nil, nil
	}
	var hash [32]byte
	if n, err := hex.Decode(hash[:], []byte(in.Ticket)); err != nil || n != len(hash) {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the job names no ticket")
	}
	var t storage.Ticket
	var acc storage.Account
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if t, err = tx.Tickets().ByHash(ctx, hash); err != nil {
			return err
		}
		acc, err = tx.Accounts().ByID(ctx, t.Account)
		return err
	})
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	l := a.Words(acc.Language)
	// The address says at which time: the same letter at each attempt.
	at := l.Time(t.ExpiresAt.Add(-tellFor).UTC(), "2 Jan 2006, 15:04 UTC")
	err = a.Mail.Send(ctx, Letter{ID: "former-" + in.Ticket[:32], To: t.Mail, Subject: l.Text("Your address at %s was changed", a.Name), Text: paragraphs(
		l.Text("Your account at %s has had another mail address since %s. Sign-in links are no longer sent to this one.", a.Base, at),
		l.Text("If that was not you, tell the operator of the node."),
	)})
	if err != nil {
		return retry(j, forADay, &in.trial, &in, err)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Tickets().Spend(ctx, hash)
		return storage.IfMissing(err, nil)
	}, nil
}
