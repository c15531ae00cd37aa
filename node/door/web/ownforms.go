package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// scopes returns the scopes that were ticked and those that every owner may give.
func (f *sent) scopes() []protocol.Scope {
	scopes := slices.Clone(protocol.OwnerScopes)
	for _, s := range f.values["scopes"] {
		scopes = append(scopes, protocol.Scope(s))
	}
	return append(scopes, protocol.ScopeAccount)
}

// sentForm rebuilds a form from what was posted.
func sentForm(f *sent, handles []string, scopes []protocol.Scope) templ.Component {
	op := protocol.Lookup(f.do)
	switch t := tableOf(op, f.part); {
	case op == protocol.CreateToken.Operation:
		return tokenForm(f, handles, scopes)
	case op == protocol.CreateInvitation.Operation:
		return invitationForm(f)
	case op == protocol.PutAccount.Operation:
		return nameForm(f, protocol.Account{})
	case op == protocol.PutAccountMail.Operation && f.values.Get("mail") != "":
		return mailForm(f)
	case op == protocol.ConfirmMail.Operation || op == protocol.ConfirmAccountMail.Operation:
		return codeForm(f, f.do, f.handle, "")
	case op == protocol.AddPasskey.Operation:
		return passkeyForm(f)
	case op == protocol.ExportArchive.Operation:
		return exportForm(f, handles)
	case op == protocol.ImportArchive.Operation:
		return importForm(f)
	case op == protocol.ImportItems.Operation:
		return importItemsForm(f, f.handle, nil)
	case op == protocol.PutPicture.Operation:
		return pictureForm(f, f.handle, f.values.Get("sku"))
	case f.part == "item":
		return itemForm(f, f.handle, protocol.ItemDraft{SKU: f.values.Get("sku")})
	case t != nil && t.controls != nil:
		return againForm(f, t)
	}
	return plainForm(f)
}

// againForm is a form with the fields of a table, and the others hidden.
func againForm(f *sent, t *formTable) templ.Component {
	shown, others := map[string]bool{}, hidden()
	t = t.choosable()
	each(t.controls, func(c control) { shown[c.name] = true })
	for _, name := range f.names() {
		for _, text := range f.values[name] {
			if !shown[name] {
				others = append(others, name, text)
			}
		}
	}
	at := formID(f.do, f.handle, "")
	return posted("card form", at, f.sentTo(), others, t.fields(f, at, nil), sends("Send it again"))
}

// sentTo returns where the form was sent.
func (f *sent) sentTo() string {
	if f.path == "" {
		return "/account"
	}
	return f.path
}

// spaced returns the name of a field as words: floorPrice is Floor price.
func spaced(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0:
			b.WriteRune(unicode.ToUpper(r))
		case unicode.IsUpper(r) || r == '-':
			b.WriteRune(' ')
			if r != '-' {
				b.WriteRune(unicode.ToLower(r))
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// scopeWords describe the scopes that a token may have.
var scopeWords = [][2]string{
	{"post", english("Post on the board and in threads")}, {"profile", english("Profile, needs and capabilities")}, {"keys", english("Keys")},
	{"inbox", english("Threads that others began")}, {"notify", english("Where notices go")}, {"archive", english("Export and import")}, {"attention",
		english("The attention board, its bids and money")},
	{"meetings", english("Meeting requests, and when you can be met")}, {"orders", english("Receipts for orders")},
	{"account", english("Tokens, sessions, mail address")}, {"operator", english("The operator's work")},
}

var eventWords = map[protocol.NoticeEvent]string{
	protocol.OrderChanged: english("An order is made, is paid, or needs you"),
	protocol.ThreadBegun:  english("Someone starts a thread"), protocol.ThreadMessage: english("A thread has a new message"),
	protocol.BidIsClaimed: english("A payment for a bid waits for your confirmation"), protocol.BidIsLive: english("A bid on your board is live"),
	protocol.BidRefundByHand: english("A refund of a bid needs you"),
	protocol.MeetingAsked:    english("Somebody asks for a meeting"),
	protocol.MeetingChanged:  english("A requester takes, withdraws or cancels a meeting"),
	protocol.CalendarTrouble: english("A calendar cannot be read or written"),
	protocol.CatalogTrouble:  english("The catalog of the shop cannot be read at its address"),
	protocol.MeetingReminder: english("A meeting is in a day, or in an hour"),
	protocol.ProfileNamed:    english("A post names the profile as @handle"),
	protocol.ReviewCounted:   english("A review of the business counts"),
	protocol.ReceiptIssued:   english("A receipt is issued to you for a payment"),
	protocol.PostReported:    english("A post is reported"), protocol.PostHidden: english("A post is hidden"),
}

// scopeList says what a token may do.
func scopeList(ctx context.Context, scopes []protocol.Scope) string {
	var words []string
	for _, x := range scopeWords {
		if slices.Contains(scopes, protocol.Scope(x[0])) {
			words = append(words, tr(ctx, x[1]))
		}
	}
	return strings.Join(words, "; ")
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// crumbs lead to the account, and to the same page of other profiles.
func (a *account) crumbs() []templ.Component {
	links := []templ.Component{back()}
	for _, p := range a.others() {
		links = append(links, profileCrumb(a.Page.to(p.Handle), p.Handle, p.Handle == a.Handle))
	}
	return links
}

func keyKind(k protocol.PublicJWK) string {
	if k.Crv != "" {
		return k.Crv
	}
	return k.Kty
}

func nameForm(f *sent, a protocol.Account) templ.Component {
	var languages [][2]string
	for _, l := range words.All().Languages {
		languages = append(languages, [2]string{l.Code, l.Name})
	}
	return posted("card form", "put_account", "/account", hidden("do", "put_account"), ask(protocol.PutAccount.Operation, f, "put_account",
		url.Values{"name": {a.Name}, "language": {a.Language}}, line("name", "Your name on this node; no profile shows it"),
		choose("language", "Language of mails and notices", languages).chosen()), sends("Save"))
}

// codeForm is the form for the code of a letter; code is that of its link.
func codeForm(f *sent, do, handle, code string) templ.Component {
	at := formID(do, handle, "")
	return posted("card form", at, "/account", ownKeys(do, handle, ""), ask(protocol.Lookup(do), f, at, url.Values{"code": {code}},
		line("code", "Code in the mail").with("autocomplete", "one-time-code", "required", "")), sends("Confirm##an address"))
}

func mailForm(f *sent) templ.Component {
	return posted("card form", "put_account_mail", "/account", hidden("do", "put_account_mail"), ask(protocol.PutAccountMail.Operation, f, "put_account_mail", nil,
		line("mail", "New mail address; a code is sent there").with("type", "email", "required", "", "autocomplete", "email")), sends("Send the code"))
}

// act is a form with one button. label is in the reader's language.
func act(do, label, handle, name, value string) templ.Component {
	subject := hidden()
	if name != "" {
		subject = hidden(name, value)
	}
	return posted("", "", "/account", hidden("do", do), once(), ownKeys("", handle, ""), subject, quietly(label))
}

// ownKeys are the hidden fields of a form: what it does, the profile and the thing that it is about; without those that are empty.
func ownKeys(do, handle, id string) (keys hiddenPairs) {
	for _, pair := range [][2]string{{"do", do}, {"handle", handle}, {"id", id}} {
		if pair[1] != "" {
			keys = append(keys, pair[:]...)
		}
	}
	return keys
}

func tokenForm(f *sent, handles []string, scopes []protocol.Scope) templ.Component {
	given := slices.DeleteFunc(slices.Clone(scopeWords), func(x [2]string) bool { return !slices.Contains(scopes, protocol.Scope(x[0])) })
	return posted("card form", "create_token", "/account", subtitle("A new token"), hidden("do", "create_token"), once(),
		ask(protocol.CreateToken.Operation, f, "create_token", nil, line("name", "What it is for"),
			choose("handle", "For##which profile", ofProfiles(handles, english("Every profile of the account"))).chosen(),
			several("scopes", "What it may do", given),
			line("expiresInDays", "Days until it expires; empty for no expiry").with("pattern", "[0-9]*")), sends("Make the token"))
}

// ofProfiles are the profiles to choose from; all is the key for every one, "" for none such.
func ofProfiles(handles []string, all string) (options [][2]string) {
	if all != "" {
		options = append(options, [2]string{"", all})
	}
	for _, h := range handles {
		if h != "" {
			options = append(options, [2]string{h, "@" + h})
		}
	}
	return options
}

func notifyForm(f *sent, handle string, n protocol.NotifySettings) templ.Component {
	t := notifyTable
	if !n.MailOffered {
		t = t.without("mail")
	}
	return ownForm(t, f, formID("put_notify", handle, ""), handle, notifyValues(n), sends("Save"))
}
