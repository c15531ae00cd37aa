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

// edits are the forms that are edits, by operation and part.
var edits = map[string]edit{
	"put_own_profile": editOf(protocol.GetOwnProfile.Operation,
		func(p protocol.OwnProfile, _ url.Values) url.Values { return profileValues(p) }, editedProfile),
	"put_capability": editOf(protocol.ListCapabilities.Operation, func(all protocol.OwnCapabilities, form url.Values) url.Values {
		for _, c := range all.Items {
			if c.ID == form.Get("id") {
				return capabilityValues(c)
			}
		}
		return nil
	}, nil),
	"put_need": editOf(protocol.ListNeeds.Operation, func(all protocol.OwnNeeds, form url.Values) url.Values {
		for _, n := range all.Items {
			if n.ID == form.Get("id") {
				return needValues(n)
			}
		}
		return nil
	}, nil),
	"put_notify":          editOf(protocol.GetNotify.Operation, func(n protocol.NotifySettings, _ url.Values) url.Values { return notifyValues(n) }, nil),
	"put_item-item":       editOf(protocol.GetOwnItem.Operation, storedItem, changedItem).by("sku"),
	"put_item-quick":      editOf(protocol.GetOwnItem.Operation, storedQuick, changedQuick).by("sku"),
	"put_item-restore":    editOf(protocol.GetOwnItem.Operation, nil, restoredItem).by("sku"),
	"remove_item-remove":  editOf(protocol.GetOwnItem.Operation, nil, removedItem).by("sku"),
	"put_merchant-move":   editOf(protocol.GetMerchantRecord.Operation, nil, movedItem),
	"put_merchant-hours":  editOf(protocol.GetMerchantRecord.Operation, storedHours, changedHours),
	"put_merchant-close":  editOf(protocol.GetMerchantRecord.Operation, nil, closedDays),
	"put_merchant-reopen": editOf(protocol.GetMerchantRecord.Operation, nil, reopenedDays),
	"put_merchant-shop":   editOf(protocol.GetMerchantRecord.Operation, storedShop, changedShop),
	"put_meeting_settings": editOf(protocol.GetMeetingSettings.Operation,
		func(m protocol.MeetingSettings, _ url.Values) url.Values { return settingsValues(m) },
		func(_ protocol.MeetingSettings, form url.Values) (any, error) { return settingsInput(form), nil }),
	"put_attention_board": editOf(protocol.GetOwnAttentionBoard.Operation,
		func(b protocol.OwnAttentionBoard, _ url.Values) url.Values { return boardValues(b) },
		func(_ protocol.OwnAttentionBoard, form url.Values) (any, error) {
			return attentionInput(protocol.PutAttentionBoard.Operation, form), nil
		}),
	"put_payment_account": editOf(protocol.GetPaymentAccount.Operation,
		func(a protocol.PaymentAccount, _ url.Values) url.Values { return payAccountValues(a) },
		func(_ protocol.PaymentAccount, form url.Values) (any, error) {
			return attentionInput(protocol.PutPaymentAccount.Operation, form), nil
		}),
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
			tag = hall.Tag(read.JSON)
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
		var args any
		if e.args != nil {
			args, err = e.args(read.JSON, form)
		} else {
			args = s.input(r, op)
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
		if !slices.Equal(stored[name], sent) && stored.Get(name)+form.Get(name) != "" {
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
	v := valued("name", p.Name, "headline", p.Headline, "description", p.Description, "tags", strings.Join(p.Tags, ", "),
		"languages", strings.Join(p.Languages, ", "), "regions", strings.Join(p.Regions, ", "), "timezone", p.Timezone,
		"responseTime", deref(policy.ResponseTime), "agents", yes(policy.OutsideAgentsWithIdentity), "anonymous", yes(policy.Anonymous),
		"listed", yes(p.Listed != nil && *p.Listed))
	v["kinds"] = policy.Kinds
	return v
}

// editedProfile returns the stored profile with the form's fields; what the form does not show is
// unchanged.
func editedProfile(p protocol.OwnProfile, form url.Values) (any, error) {
	p.Name, p.Headline, p.Description, p.Timezone = form.Get("name"), form.Get("headline"), form.Get("description"), form.Get("timezone")
	p.Tags, p.Languages, p.Regions = tidyList("tags", form.Get("tags")), tidyList("languages", form.Get("languages")), tidyList("regions", form.Get("regions"))
	p.Listed = new(form.Get("listed") != "")
	p.ContactPolicy = &protocol.PolicyDraft{OutsideAgentsWithIdentity: form.Get("agents") != "", Anonymous: form.Get("anonymous") != "", Kinds: form["kinds"]}
	if when := form.Get("responseTime"); when != "" {
		p.ContactPolicy.ResponseTime = &when
	}
	return p, nil
}

func needValues(n protocol.Need) url.Values {
	return valued("description", n.Description, "tags", strings.Join(n.Tags, ", "))
}

func capabilityValues(c protocol.Capability) url.Values {
	price := pricingOf(c)
	return valued("name", c.Name, "description", c.Description, "tags", strings.Join(c.Tags, ", "), "input", c.Input, "output", c.Output,
		"endpoint", c.Endpoint, "pricing-model", string(price.Model), "pricing-amount", amountOf(price.Amount), "pricing-currency", price.Currency,
		"pricing-note", price.Note)
}

// told returns the events that a notice is sent for: without a choice, every one.
func told(n protocol.NotifySettings) []protocol.NoticeEvent {
	if len(n.Events) == 0 {
		return protocol.NoticeEvents
	}
	return n.Events
}

func notifyValues(n protocol.NotifySettings) url.Values {
	v := valued("mail", deref(n.Mail), "webhook", deref(n.Webhook))
	for _, e := range told(n) {
		v.Add("events", string(e))
	}
	return v
}
