package web

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// An edit is a form that changes a part of something which its operation replaces. The form carries
// the version of what it showed: a save in another tab in between is not lost, but shown beside what
// was typed.
type edit struct {
	read *protocol.Operation // what is stored, to whose version the write is bound
	key  string              // the field that names it within its profile, "" for none; what it names may be gone
	// stored returns what the form shows of it; nothing for a part that is not there.
	stored func(raw []byte, form url.Values) (url.Values, error)
	// args returns the input of the operation. nil: it is made of the form alone.
	args func(raw []byte, form url.Values) (any, error)
}

// editOf returns an edit of what an operation reads as a T.
func editOf[T any](read *protocol.Operation, stored func(T, url.Values) url.Values, args func(T, url.Values) (any, error)) edit {
	decode := func(raw []byte) (v T, err error) { return v, json.Unmarshal(raw, &v) }
	e := edit{read: read}
	if stored != nil {
		e.stored = func(raw []byte, form url.Values) (url.Values, error) {
			v, err := decode(raw)
			if err != nil {
				return nil, err
			}
			return stored(v, form), nil
		}
	}
	if args != nil {
		e.args = func(raw []byte, form url.Values) (any, error) {
			v, err := decode(raw)
			if err != nil {
				return nil, err
			}
			return args(v, form)
		}
	}
	return e
}

// by returns the edit of what a field names.
func (e edit) by(field string) edit {
	e.key = field
	return e
}

// shown is what a form shows of something whose form is the only one.
func shown[T any](values func(T) url.Values) func(T, url.Values) url.Values {
	return func(v T, _ url.Values) url.Values { return values(v) }
}

// edits are the forms that are edits, by operation and part.
var edits = map[string]edit{
	"put_own_profile": editOf(protocol.GetOwnProfile.Operation, shown(profileValues),
		func(p protocol.OwnProfile, form url.Values) (any, error) {
			return inputOver(protocol.PutOwnProfile.Operation, p, form), nil
		}),
	"put_capability": editOf(protocol.ListCapabilities.Operation, func(all protocol.OwnCapabilities, form url.Values) url.Values {
		n := slices.IndexFunc(all.Items, func(c protocol.Capability) bool { return c.ID == form.Get("id") })
		if n < 0 {
			return nil
		}
		return capabilityTable.shows(all.Items[n])
	}, nil),
	"put_need": editOf(protocol.ListNeeds.Operation, func(all protocol.OwnNeeds, form url.Values) url.Values {
		n := slices.IndexFunc(all.Items, func(n protocol.Need) bool { return n.ID == form.Get("id") })
		if n < 0 {
			return nil
		}
		return needTable.shows(all.Items[n])
	}, nil),
	"put_notify":           editOf(protocol.GetNotify.Operation, shown(notifyValues), nil),
	"put_item-item":        editOf(protocol.GetOwnItem.Operation, storedItem, changedItem).by("sku"),
	"put_item-quick":       editOf(protocol.GetOwnItem.Operation, storedQuick, changedQuick).by("sku"),
	"put_item-restore":     editOf(protocol.GetOwnItem.Operation, nil, restoredItem).by("sku"),
	"remove_item-remove":   editOf(protocol.GetOwnItem.Operation, nil, removedItem).by("sku"),
	"put_merchant-move":    editOf(protocol.GetMerchantRecord.Operation, nil, movedItem),
	"put_merchant-hours":   editOf(protocol.GetMerchantRecord.Operation, shown(hoursValues), changedRecord),
	"put_merchant-close":   editOf(protocol.GetMerchantRecord.Operation, nil, closedDays),
	"put_merchant-reopen":  editOf(protocol.GetMerchantRecord.Operation, nil, reopenedDays),
	"put_merchant-shop":    editOf(protocol.GetMerchantRecord.Operation, shown(shopValues), changedRecord),
	"put_meeting_settings": editOf(protocol.GetMeetingSettings.Operation, shown(settingsValues), nil),
	"put_attention_board":  editOf(protocol.GetOwnAttentionBoard.Operation, shown(boardValues), nil),
	"put_till":             editOf(protocol.GetTill.Operation, shown(func(t protocol.Till) url.Values { return tillTable.shows(t) }), nil),
	"put_payment_account":  editOf(protocol.GetPaymentAccount.Operation, shown(func(a protocol.PaymentAccount) url.Values { return payTable.shows(a) }), nil),
}

// maxTries is how often an edit is tried when other writes come between reading and writing.
const maxTries = 5

// save writes an edit. now is what is stored when the form shows something else, otherwise nil.
func (s *Web) save(r *http.Request, op *protocol.Operation, e edit) (now url.Values, err error) {
	form := r.PostForm
	for range maxTries {
		var read hall.Result
		named, tag := map[string]any{"handle": form.Get("handle")}, ""
		if e.key != "" {
			named[e.key] = form.Get(e.key)
		}
		switch read, err = s.invokeOwner(r, e.read, named, ""); {
		case err == nil:
			tag = netx.Tag(read.JSON)
		case e.key != "" && protocol.CodeOf(err) == protocol.NotFound:
			read.JSON = []byte("null")
		default:
			return nil, err
		}
		if e.stored != nil && form.Get("version") != "" {
			stored, err := e.stored(read.JSON, form)
			if err != nil {
				return nil, err
			}
			if versionOf(stored) != form.Get("version") && !written(stored, form) {
				if stored == nil {
					stored = url.Values{}
				}
				return stored, protocol.Errorf(protocol.PreconditionFailed, "this was changed in the meantime, perhaps by you in another tab")
			}
		}
		args := any(inputOf(op, form))
		if e.args != nil {
			args, err = e.args(read.JSON, form)
		}
		if err != nil {
			return nil, err
		}
		_, err = s.invokeOwner(r, op, args, tag)
		if errors.Is(err, hall.ErrKeyReused) { // this form was done, and what it replaced is different since
			return nil, nil
		}
		if protocol.CodeOf(err) != protocol.PreconditionFailed {
			return nil, err
		}
	}
	return nil, err
}

// written reports whether a form would write what is stored already, as when it is sent twice.
func written(stored, form url.Values) bool {
	for name := range stored {
		sent := form[name]
		if coded, ok := codings[name]; ok {
			sent = []string{strings.Join(coded.codes(name, form.Get(name)), ", ")}
		}
		if !slices.Equal(stored[name], sent) && stored.Get(name)+form.Get(name) != "" && !sameTyped(name, stored.Get(name), form) {
			return false
		}
	}
	return stored != nil
}

// versionOf returns the version of what a form shows.
func versionOf(shown url.Values) string {
	sum := sha256.Sum256([]byte(shown.Encode()))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// version returns the version that a form carries. One that was refused keeps what it had; when
// something else is stored now, the next save replaces that.
func (f *sent) version(shown url.Values) string {
	switch {
	case f == nil:
		return versionOf(shown)
	case f.now != nil:
		return versionOf(f.now)
	}
	return f.values.Get("version")
}

// differs reports whether something else than what was typed is stored now in a field.
func (f *sent) differs(name string) bool {
	return f != nil && f.now != nil && !slices.Equal(f.now[name], f.values[name]) && f.now.Get(name)+f.values.Get(name) != ""
}

// valued sets the fields that have a value.
func valued(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// yes is the value of a box, "" without a tick.
func yes(on bool) string {
	if on {
		return "true"
	}
	return ""
}

func profileValues(p protocol.OwnProfile) url.Values {
	policy := p.Policy()
	p.ContactPolicy = &protocol.PolicyDraft{OutsideAgentsWithIdentity: policy.OutsideAgentsWithIdentity, Anonymous: policy.Anonymous, Kinds: policy.Kinds,
		ResponseTime: policy.ResponseTime}
	return profileTable.shows(p)
}

// told returns the events that a notice is sent for: without a choice, every one.
func told(n protocol.NotifySettings) []protocol.NoticeEvent {
	if len(n.Events) == 0 {
		return protocol.NoticeEvents
	}
	return n.Events
}

func notifyValues(n protocol.NotifySettings) url.Values {
	n.Events = told(n)
	return notifyTable.shows(n)
}
