package account

import (
	"cmp"
	"context"
	"errors"

	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// The first operator of a node: a link that is printed on the machine makes an account, once, as long as none is an operator's.

// errOperated is the error of a link to make the first operator where there is one.
var errOperated = protocol.Errorf(protocol.Conflict, "this node has an operator; sign in, or ask the operator for an account")

// errOperatorLink is the error of a link to make the first operator that is not good.
var errOperatorLink = protocol.Errorf(protocol.Gone,
	"this link was used, was replaced by a newer one, or has expired; stoa admin account first-operator prints another")

// OperatorLink makes the link to become the first operator, and ends those before it.
func (a *Accounts) OperatorLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OperatorLinkOrder) (out protocol.SignInLink, err error) {
	has, err := tx.Accounts().HasOperator(ctx)
	if err != nil {
		return out, err
	}
	if has {
		return out, protocol.Errorf(protocol.Conflict, "this node has an operator; stoa admin account create NAME --role operator makes another")
	}
	if in.Keep {
		if n, err := tx.Tickets().CountOf(ctx, storage.TicketOperator, ""); err != nil || n > 0 {
			return out, err
		}
	}
	if err := tx.Tickets().Drop(ctx, "", storage.TicketOperator); err != nil {
		return out, err
	}
	secret, hash := session.New(session.Ticket)
	out = protocol.SignInLink{URL: a.Base + "/operator?ticket=" + secret, ExpiresAt: tx.Now.Add(protocol.OperatorLinkLife)}
	if err := tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketOperator, ExpiresAt: out.ExpiresAt}); err != nil {
		return out, err
	}
	return out, tx.Audit(ctx, c.Actor(), "operator link", "", "")
}

// mayOperate refuses a link that cannot make the first operator now, and returns the hash of its secret.
func (a *Accounts) mayOperate(ctx context.Context, tx *storage.Tx, ticket string) (hash [32]byte, err error) {
	hash, ok := session.Hash(session.Ticket, ticket)
	if !ok {
		return hash, errOperatorLink
	}
	if has, err := tx.Accounts().HasOperator(ctx); err != nil || has {
		return hash, cmp.Or(err, error(errOperated))
	}
	t, err := tx.Tickets().ByHash(ctx, hash)
	if err == nil && t.Purpose != storage.TicketOperator {
		err = storage.ErrNotFound
	}
	return hash, storage.IfMissing(err, errOperatorLink)
}

// OperatorOptions returns what a browser needs to make the passkey of the first operator, who is called name; no challenge where the node's
// address has no passkeys. Nothing is stored: the challenge holds the link and the id of the account to be made.
func (a *Accounts) OperatorOptions(ctx context.Context, tx *storage.Tx, ticket, name string) (out protocol.PasskeyOptions, err error) {
	if _, err := a.mayOperate(ctx, tx, ticket); err != nil || a.Site == nil {
		return out, err
	}
	id := protocol.NewID(protocol.AccountID, tx.Now)
	return protocol.PasskeyOptions{
		Challenge: a.Challenges.New(session.NewPasskey, operatorBound(ticket, id), tx.Now), Domain: a.Site.Domain, Site: a.Name, User: id, Name: name,
		Algorithms: passkey.Algorithms(), Exclude: []string{},
	}, nil
}

func operatorBound(ticket, account string) string { return ticket + " " + account }

// BecomeOperator spends the link and makes the first operator, with the passkey of its browser where the node's address has passkeys, and begins
// a session. account is the id of [Accounts.OperatorOptions].
func (a *Accounts) BecomeOperator(ctx context.Context, tx *storage.Tx, b session.Browser, ticket, account string, in protocol.NewPasskey) (string, error) {
	hash, err := a.mayOperate(ctx, tx, ticket)
	if err != nil {
		return "", err
	}
	if _, err := tx.Tickets().Spend(ctx, hash); err != nil {
		return "", storage.IfMissing(err, errOperatorLink)
	}
	acc := storage.Account{ID: account, Name: in.Name, Role: protocol.RoleOperator, CreatedAt: tx.Now}
	if a.Site == nil {
		acc.ID = protocol.NewID(protocol.AccountID, tx.Now)
	} else if _, err := a.keepPasskey(ctx, tx, operatorBound(ticket, account), account, in); err != nil {
		return "", err
	}
	if err := tx.Accounts().Insert(ctx, acc); errors.Is(err, storage.ErrExists) {
		return "", errChallenge
	} else if err != nil {
		return "", err
	}
	if err := tx.Audit(ctx, acc.ID, "account create", acc.ID, string(acc.Role)); err != nil {
		return "", err
	}
	return a.begin(ctx, tx, acc.ID, b)
}
