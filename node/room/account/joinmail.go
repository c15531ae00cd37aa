package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"stoa/identity/eip4361"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// joinsAtOnce and joinsADay are how many letters go to one address within the life of a code and within a day, whoever asks for them.
const joinsAtOnce, joinsADay = 3, 10

// joinLetter is the arguments of [storage.JoinJob]. It holds no address and no secret.
type joinLetter struct {
	Hash string `json:"hash"` // of the secret in the browser, hexadecimal
	trial
}

// AskJoin stores what somebody typed on the page to join, and sends a code to the address. What it does and answers is the same
// whether an account has the address or not. The secret stays in the browser.
func (a *Accounts) AskJoin(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewMember, mail, language string) (secret string, err error) {
	address, err := protocol.ParseMail(mail)
	if err != nil {
		return "", err
	}
	if a.Mail == nil {
		return "", protocol.Errorf(protocol.Conflict, "this node sends no mail, so that no address can be confirmed")
	}
	if err := tx.Joins().Lock(ctx); err != nil {
		return "", err
	}
	invited, state, err := a.may(ctx, tx, in.Invitation)
	if err != nil {
		return "", err
	}
	if err := a.free(ctx, tx, in.Handle); err != nil {
		return "", err
	}
	if err := a.queue(ctx, tx, invited.ID != "", state); err != nil {
		return "", err
	}
	for most, within := range map[int]time.Duration{joinsAtOnce: protocol.JoinCodeLife, joinsADay: joinWindow} {
		n, err := tx.Joins().CountAsked(ctx, address, tx.Now.Add(-within))
		if err != nil {
			return "", err
		}
		if n >= most {
			return "", &protocol.Error{Code: protocol.RateLimited, Detail: "several codes were sent to this address; use the last one, or wait",
				RetryAfter: within}
		}
	}
	secret, hash := session.New(session.Ticket)
	m := storage.JoinMail{Hash: hash, Mail: address, Draft: in.JoinDraft, Invitation: in.Invitation, Language: language, Network: c.Network,
		ExpiresAt: tx.Now.Add(joinWindow)}
	rand.Read(m.Code[:]) // until the letter is written, no code is right
	rand.Read(m.Link[:])
	if err := tx.Joins().Ask(ctx, m); err != nil {
		return "", err
	}
	if err := a.begins(ctx, tx, c.Network, invited.ID != ""); err != nil {
		return "", err
	}
	args, err := json.Marshal(joinLetter{Hash: hex.EncodeToString(hash[:])})
	if err != nil {
		return "", err
	}
	return secret, tx.Enqueue(ctx, storage.Job{Kind: storage.JoinJob, Lane: letterLane, Args: args,
		Dedupe: string(storage.JoinJob) + " " + hex.EncodeToString(hash[:8])})
}

// SendJoinCode is the handler of JoinJob: it makes the code and the link, and sends them.
func (a *Accounts) SendJoinCode(ctx context.Context, j storage.Job, in joinLetter) (func(context.Context, *storage.Tx) error, error) {
	raw, err := hex.DecodeString(in.Hash)
	if err != nil || len(raw) != 32 || a.Mail == nil {
		return nil, err
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return nil, err
	}
	code := fmt.Sprintf("%06d", n)
	link, linkHash := session.New(session.Ticket)
	var m storage.JoinMail
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if m, err = tx.Joins().Asked(ctx, [32]byte(raw)); err != nil {
			return err
		}
		m.Code, m.Link = codeHash(m.Hash, code), linkHash
		return tx.Joins().Coded(ctx, m)
	})
	if err != nil {
		return nil, storage.Missing(err, nil)
	}
	l := a.Words(m.Language)
	err = a.Mail.Send(ctx, Letter{ID: letterID(j), To: m.Mail, Subject: l.Text("%s is your code to join %s", code, a.Name), Text: paragraphs(
		l.Text("Your code to join %s is %s. It is good for ten minutes.", a.Name, code), l.Text("Or open this link:"), a.Base+"/join/confirm?ticket="+link,
		l.Text("If you did not ask for it, ignore this mail: nothing happens without the code."),
	)})
	if err != nil {
		return retry(j, whileWaiting[:4], &in.trial, &in, err)
	}
	return nil, nil
}

func codeHash(secret [32]byte, code string) [32]byte {
	return sha256.Sum256(append(append([]byte{}, secret[:]...), code...))
}

// errJoinCode does not say how many tries are left.
var errJoinCode = protocol.Invalid(protocol.Fault{Pointer: "/code", Code: "wrong", Detail: "this is not the code of the last letter"})

var errJoinGone = protocol.Errorf(protocol.Gone, "the code has expired, or a wrong one was typed five times; begin again")

// ConfirmJoin makes the account and profile of who typed the code, or opened the link (code ""), and begins a session. secret is
// that of the browser, or of the link. An account that has the address gets the profile. handle replaces the one that was typed, "" keeps it.
// The profile and all that belongs to it are made in one transaction.
func (a *Accounts) ConfirmJoin(ctx context.Context, b session.Browser, secret, code, handle string) (cookie, made string, err error) {
	hash, ok := session.Hash(session.Ticket, secret)
	if !ok {
		return "", "", errJoinGone
	}
	var wrong error
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		cookie, made, wrong = "", "", nil
		var m storage.JoinMail
		if code == "" {
			m, err = tx.Joins().AskedBy(ctx, hash)
		} else {
			m, err = tx.Joins().Asked(ctx, hash)
		}
		if err != nil || m.Tries >= protocol.JoinCodeTries {
			return storage.Missing(err, errJoinGone)
		}
		if sum := codeHash(m.Hash, code); code != "" && subtle.ConstantTimeCompare(sum[:], m.Code[:]) != 1 {
			wrong = errJoinCode // the try is counted
			return tx.Joins().Tried(ctx, m.Hash)
		}
		if err := tx.Joins().Confirmed(ctx, m.Hash); err != nil {
			return storage.IfMissing(err, errJoinGone)
		}
		if handle != "" {
			m.Draft.Handle = handle
		}
		made = m.Draft.Handle
		cookie, err = a.joinBy(ctx, tx, b, m)
		return err
	})
	if wrong != nil {
		err = wrong
	}
	return cookie, made, err
}

// joinBy makes the profile of a confirmed address under its account, which may be new.
func (a *Accounts) joinBy(ctx context.Context, tx *storage.Tx, b session.Browser, m storage.JoinMail) (cookie string, err error) {
	acc, err := tx.Accounts().ByMail(ctx, m.Mail)
	if errors.Is(err, storage.ErrNotFound) {
		acc, err = a.Open(ctx, tx, m.Draft.Name, protocol.RoleOwner, m.Mail)
	}
	if err != nil {
		return "", err
	}
	e := entrance{draft: m.Draft, invitation: m.Invitation, network: m.Network, begun: true,
		joined: storage.Joined{Way: storage.JoinedByPage, ConfirmedAt: &tx.Now}}
	if _, err := a.enter(ctx, tx, &e); err != nil {
		return "", err
	}
	if err := a.Link(ctx, tx, acc.ID, m.Draft.Handle); err != nil {
		return "", err
	}
	if err := tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: m.Draft.Handle, Mail: m.Mail, Confirmed: true}); err != nil {
		return "", err
	}
	return a.begin(ctx, tx, acc.ID, b)
}

// JoinByPasskey makes an account and a profile with nothing but the session that it begins. Its owner adds a passkey or an
// address within [protocol.JoinLapse], or both are deleted.
func (a *Accounts) JoinByPasskey(ctx context.Context, b session.Browser, in protocol.NewMember) (cookie string, err error) {
	if a.Site == nil {
		return "", protocol.Errorf(protocol.Conflict, "passkeys need a domain name with https, which this node does not have")
	}
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, _, err = a.joinAs(ctx, tx, b, in, nil)
		return err
	})
	return cookie, err
}

// JoinByEthereum makes an account, to which the Ethereum account that signed the text signs in from then on, and a profile.
func (a *Accounts) JoinByEthereum(ctx context.Context, b session.Browser, in protocol.NewMember, text, signature string) (cookie string, err error) {
	m, raw, spend, err := a.signedText(b, text, signature)
	if err != nil {
		return "", err
	}
	wallet := strings.ToLower(m.Account)
	switch good, err := a.Chain.SignedOn(ctx, b.Network, m.ChainID, wallet, eip4361.Digest(text), raw); {
	case err != nil:
		return "", err
	case !good:
		return "", protocol.Errorf(protocol.Forbidden, "the signature is not that of the Ethereum account; sign the text of this page")
	}
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Requests().Spend(ctx, spend); err != nil {
			return err
		}
		made, id, err := a.joinAs(ctx, tx, b, in, &tx.Now)
		if err != nil {
			return err
		}
		cookie = made
		if err := tx.Accounts().SetWallet(ctx, id, wallet); errors.Is(err, storage.ErrExists) {
			return protocol.Errorf(protocol.Conflict, "this Ethereum account has an account here; sign in with it, then join again for one more profile")
		} else if err != nil {
			return err
		}
		return nil
	})
	return cookie, err
}

// joinAs makes a profile with an account of its own and begins a session. confirmed is when its owner showed how to come back, nil for not yet.
func (a *Accounts) joinAs(
	ctx context.Context, tx *storage.Tx, b session.Browser, in protocol.NewMember, confirmed *time.Time,
) (cookie, account string, err error) {
	e := entrance{draft: in.JoinDraft, invitation: in.Invitation, network: b.Network, joined: storage.Joined{Way: storage.JoinedByPage, ConfirmedAt: confirmed}}
	if _, err := a.enter(ctx, tx, &e); err != nil {
		return "", "", err
	}
	acc, err := a.Open(ctx, tx, in.Name, protocol.RoleOwner, "")
	if err != nil {
		return "", "", err
	}
	if err := a.Link(ctx, tx, acc.ID, in.Handle); err != nil {
		return "", "", err
	}
	cookie, err = a.begin(ctx, tx, acc.ID, b)
	return cookie, acc.ID, err
}

// FreeHandle reports whether a handle may be taken; the error says why not, with others that are free.
func (a *Accounts) FreeHandle(ctx context.Context, handle string) error {
	return a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if !protocol.IsHandle(handle) {
			return protocol.Invalid(protocol.Fault{Pointer: "/handle", Code: "wrong-shape", Detail: "2 to 39 letters a to z, digits and inner hyphens"})
		}
		return a.free(ctx, tx, handle)
	})
}
