package account

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// askEvery is the shortest time between confirmation codes to one address.
const askEvery = 15 * time.Minute

// GetNotify returns where notices about a profile are sent.
func (a *Accounts) GetNotify(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.NotifySettings, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.NotifySettings{}, err
	}
	s, err := tx.Profiles().NotifySettings(ctx, p.Draft.Handle)
	return a.settings(s), err
}

func (a *Accounts) settings(s storage.NotifySettings) protocol.NotifySettings {
	out := protocol.NotifySettings{Handle: s.Handle, MailConfirmed: s.Confirmed, MailOffered: a.Mail != nil, Events: s.Events, Links: s.Links}
	if s.Mail != "" {
		out.Mail = &s.Mail
	}
	if s.Webhook != "" {
		out.Webhook = &s.Webhook
	}
	if len(out.Events) == 0 {
		out.Events = protocol.NoticeEvents
	}
	return out
}

// PutNotify sets where notices about a profile go. A new address is sent the
// link that confirms it.
func (a *Accounts) PutNotify(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NotifyDraft) (protocol.NotifySettings, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.NotifySettings{}, err
	}
	handle := p.Draft.Handle
	old, err := tx.Profiles().NotifySettings(ctx, handle)
	if err != nil {
		return protocol.NotifySettings{}, err
	}
	s := storage.NotifySettings{Handle: handle, Webhook: in.Webhook, Events: in.Events}
	if in.Webhook != "" {
		if why := protocol.CallbackFault(in.Webhook, a.Private); why != "" {
			return protocol.NotifySettings{}, protocol.Invalid(protocol.Fault{Pointer: "/webhook", Code: "not-public", Detail: why})
		}
	}
	if in.Mail != "" {
		if a.Mail == nil {
			return protocol.NotifySettings{}, protocol.Errorf(protocol.Conflict, "this node sends no mail; give a webhook")
		}
		if s.Mail, err = protocol.ParseMail(in.Mail); err != nil {
			return protocol.NotifySettings{}, err
		}
		s.Confirmed = s.Mail == old.Mail && old.Confirmed
	}
	s.KeepLinks(old, c.May(protocol.ScopeAttention))
	if err := tx.Profiles().PutNotifySettings(ctx, s); err != nil {
		return protocol.NotifySettings{}, err
	}
	if s.Mail != "" && !s.Confirmed {
		if err := a.askConfirmation(ctx, tx, s); err != nil {
			return protocol.NotifySettings{}, err
		}
	}
	return a.settings(s), nil
}

// askConfirmation sends the code that confirms the address of a profile, unless one
// was sent recently.
func (a *Accounts) askConfirmation(ctx context.Context, tx *storage.Tx, s storage.NotifySettings) error {
	if sent, err := mayAsk(ctx, tx, storage.TicketNoticeMail, s.Handle, s.Mail); err != nil || sent {
		return err
	}
	args, err := json.Marshal(letter{Handle: s.Handle})
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.ConfirmJob, Lane: letterLane, Args: args, Dedupe: string(storage.ConfirmJob) + " " + s.Handle})
}

// ConfirmMail records that the owner can read mail to the address.
func (a *Accounts) ConfirmMail(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MailCode) (protocol.NotifySettings, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.NotifySettings{}, err
	}
	return a.confirm(ctx, tx, p.Draft.Handle, in.Code)
}

// ErrCode is the error of a code that was used, has expired or never existed.
var ErrCode = protocol.Errorf(protocol.Gone, "this code was used before, has expired, or is for another address; set the address again for a new one")

func (a *Accounts) confirm(ctx context.Context, tx *storage.Tx, handle, code string) (protocol.NotifySettings, error) {
	hash, ok := session.Hash(session.Ticket, code)
	if !ok {
		return protocol.NotifySettings{}, ErrCode
	}
	t, err := tx.Tickets().ByHash(ctx, hash)
	if err != nil || t.Purpose != storage.TicketNoticeMail || handle != "" && t.Handle != handle {
		return protocol.NotifySettings{}, storage.Missing(err, ErrCode)
	}
	s, err := tx.Profiles().NotifySettings(ctx, t.Handle)
	if err != nil {
		return protocol.NotifySettings{}, err
	}
	if s.Mail != t.Mail {
		return protocol.NotifySettings{}, ErrCode
	}
	if _, err := tx.Tickets().Spend(ctx, hash); err != nil {
		return protocol.NotifySettings{}, missing(err, "%s", ErrCode.Detail)
	}
	s.Confirmed = true
	return a.settings(s), tx.Profiles().PutNotifySettings(ctx, s)
}

// wants reports whether the owner wants notices of an event.
func wants(s storage.NotifySettings, e protocol.NoticeEvent) bool {
	return len(s.Events) == 0 || slices.Contains(protocol.AlwaysTold, e) || slices.Contains(s.Events, e)
}
