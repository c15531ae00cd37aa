package web

import (
	"cmp"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// An accountPage is a page of the account, with one subject. A new page needs a row in
// accountPages: navigation and index follow from it, and the route if it has a body.
type accountPage struct {
	path    string
	title   string
	about   string                         // what one does there, for the index; "" for a page of a profile that another one leads to
	kinds   []protocol.ProfileKind         // of the profiles that each have such a page; nil: one page for the account
	forms   []*protocol.Operation          // what its forms may do
	node    bool                           // for operators only
	invites bool                           // for who may invite others
	parts   []string                       // of its forms that each change a part of what an operation writes: the operation and the part
	shows   []*protocol.Operation          // whose answers it shows
	read    []reading                      // what else
	copies  bool                           // it has texts to copy
	uploads bool                           // it has a form with a file
	body    func(*account) templ.Component // nil: the page has a route of its own
	at      string                         // where its forms are sent, "" for /account
}

// own reports whether the page is about one profile.
func (p accountPage) own() bool { return p.kinds != nil }

// does reports whether the page has the form of an operation.
func (p accountPage) does(op *protocol.Operation, part string) bool {
	return slices.Contains(p.forms, op) && (p.parts == nil || slices.Contains(p.parts, op.Name+"-"+part))
}

// sentTo returns where the forms of the page are sent.
func (p accountPage) sentTo() string { return cmp.Or(p.at, "/account") }

// pageAt returns the page with that path.
func pageAt(path string) accountPage {
	n := slices.IndexFunc(accountPages, func(p accountPage) bool { return p.path == path })
	return accountPages[n]
}

// has reports whether a profile has the page.
func (p accountPage) has(h protocol.HeldProfile) bool {
	return slices.Contains(p.kinds, h.Kind)
}

// shown reports whether an account sees the page. invites is how many others the node lets an owner invite.
func (p accountPage) shown(who protocol.Account, invites int) bool {
	return who.Role == protocol.RoleOperator || !p.node && (!p.invites || invites > 0)
}

// to returns the path of the page for a profile, "" for the only one.
func (p accountPage) to(handle string) string {
	if handle == "" {
		return p.path
	}
	return p.path + "?" + url.Values{"handle": {handle}}.Encode()
}

var (
	everybody = []protocol.ProfileKind{protocol.Person, protocol.Business}
	persons   = []protocol.ProfileKind{protocol.Person}
	shops     = []protocol.ProfileKind{protocol.Business}
)

// A reading reads something that a page shows.
type reading = func(*account, *Web, *http.Request) error

// answers are what operations said of what a page shows: pointers to their results.
type answers map[*protocol.Operation]any

func (all answers) of(op *protocol.Operation) any { return all[op] }

// answer returns what an operation said of what a page shows, the zero value when the page did not ask it.
func answer[In, Out any](page interface{ of(*protocol.Operation) any }, op protocol.Op[In, Out]) (out Out) {
	if said, ok := page.of(op.Operation).(*Out); ok {
		return *said
	}
	return out
}

// ask asks an operation.
func (all answers) ask(s *Web, r *http.Request, op *protocol.Operation, args map[string]any) error {
	all[op] = reflect.New(op.Out).Interface()
	return s.invokeSignedIn(r, op, args, all[op])
}

// next returns where a list continues that an operation gave, nil at its end and for what is no list.
func (all answers) next(op *protocol.Operation) *string {
	if next := reflect.ValueOf(all[op]).Elem().FieldByName("Next"); next.IsValid() {
		return next.Interface().(*string)
	}
	return nil
}

var accountPages = []accountPage{
	{path: "/account", title: english("Your account"), read: []reading{(*account).readWaits}, body: indexBody},
	{path: startPath, title: english("First steps"), kinds: everybody, shows: []*protocol.Operation{protocol.GetOwnProfile.Operation},
		read: []reading{(*account).readStart}, body: startBody},
	{path: claimPath, title: english("Take a profile"), forms: []*protocol.Operation{protocol.ClaimProfile.Operation}, at: claimPath, body: claimBody},
	{path: "/account/threads", title: english("Inbox"), about: english("Read what others wrote to you, and answer."), kinds: everybody},
	{path: "/account/profile", title: english("Profile"), about: english("Your name, what you say about yourself, and who may write to you."), kinds: everybody,
		forms: []*protocol.Operation{protocol.PutOwnProfile.Operation},
		shows: []*protocol.Operation{protocol.GetOwnProfile.Operation}, body: ownProfileBody},
	{path: ownPicturePath, title: english("Picture"), about: english("What you look like, on your page and in lists."), kinds: everybody, uploads: true,
		forms: []*protocol.Operation{protocol.RemovePicture.Operation}, read: []reading{(*account).readPicture}, body: pictureBody},
	{path: "/account/offers", title: english("Offers and needs"), about: english("What you can do for others, and what you are looking for."), kinds: everybody,
		forms: []*protocol.Operation{protocol.PutNeed.Operation, protocol.DeleteNeed.Operation, protocol.PutCapability.Operation,
			protocol.DeleteCapability.Operation},
		shows: []*protocol.Operation{protocol.GetOwnProfile.Operation}, body: offersBody},
	{path: itemsPath, title: english("Items"), about: english("What your shop sells, with prices."),
		kinds: shops, parts: []string{"put_item-item", "put_item-quick", "put_item-restore", "remove_item-remove", "put_merchant-move"},
		forms: []*protocol.Operation{protocol.PutItem.Operation, protocol.RemoveItem.Operation, protocol.PutMerchant.Operation},
		read:  []reading{(*account).readItems}, body: itemsBody},
	{path: importItemsPath, title: english("Items from a file"), kinds: shops, uploads: true, body: importItemsBody},
	{path: catalogAddressPath, title: english("Items from an address"), kinds: shops,
		forms: []*protocol.Operation{protocol.PutCatalogAddress.Operation, protocol.ReadCatalogAddress.Operation, protocol.RemoveCatalogAddress.Operation},
		shows: []*protocol.Operation{protocol.GetCatalogAddress.Operation}, body: catalogAddressBody},
	{path: hoursPath, title: english("Opening hours"), about: english("Your hours each week, and the days when you close."), kinds: shops,
		forms: []*protocol.Operation{protocol.PutMerchant.Operation}, parts: []string{"put_merchant-hours", "put_merchant-close", "put_merchant-reopen"},
		shows: []*protocol.Operation{protocol.GetMerchantRecord.Operation}, body: hoursBody},
	{path: "/account/shop", title: english("Shop"), about: english("Category, address, telephone and website."), kinds: shops,
		forms: []*protocol.Operation{protocol.PutMerchant.Operation}, parts: []string{"put_merchant-shop"},
		shows: []*protocol.Operation{protocol.GetMerchantRecord.Operation}, body: shopBody},
	{path: ordersPath, title: english("Orders"), about: english("Orders of your shop, their money and their receipts."), kinds: shops,
		forms: []*protocol.Operation{protocol.IssueOrderReceipt.Operation, protocol.RevokeOrderReceipt.Operation, protocol.UpdateOrder.Operation,
			protocol.MarkRefunded.Operation}, copies: true,
		shows: []*protocol.Operation{protocol.ListOrderReceipts.Operation}, read: []reading{(*account).readOrders}, body: ordersBody},
	{path: orderTermsPath, title: english("How you take orders"), kinds: shops, at: orderTermsPath,
		forms: []*protocol.Operation{protocol.PutTill.Operation, protocol.PutStock.Operation, protocol.PutPaymentAccount.Operation,
			protocol.DeletePaymentAccount.Operation},
		shows: []*protocol.Operation{protocol.GetTill.Operation, protocol.GetPaymentAccount.Operation}, body: orderTermsBody},
	{path: attentionPath, title: english("Attention board"), about: english("Bids for your attention, their money, and your rules."), kinds: persons,
		at: attentionPath, forms: []*protocol.Operation{protocol.PutAttentionBoard.Operation, protocol.CloseAttentionBoard.Operation,
			protocol.PutPaymentAccount.Operation, protocol.DeletePaymentAccount.Operation, protocol.ConfirmBidPayment.Operation,
			protocol.DenyBidPayment.Operation, protocol.ApproveBid.Operation, protocol.AnswerBid.Operation, protocol.RemoveBid.Operation,
			protocol.MarkRefunded.Operation},
		read: []reading{(*account).readBoard}, body: func(a *account) templ.Component { return ownBoardBody(a.Board) }},
	{path: meetingsPath, title: english("Meetings"), about: english("Requests, your week, and when you can be met."), kinds: persons,
		read: ofMeetings((*Web).fillMeetings), body: meetingsPage(meetingsBody)},
	{path: meetingsPath + "/week", title: english("Week"), kinds: persons, read: ofMeetings((*Web).fillWeek), body: meetingsPage(weekBody)},
	{path: meetingsPath + "/settings", title: english("Meeting settings"), kinds: persons,
		at: meetingsPath, forms: []*protocol.Operation{protocol.PutMeetingSettings.Operation, protocol.UnblockWriter.Operation},
		read: ofMeetings((*Web).fillMeetingSettings), body: meetingsPage(meetingSettingsBody)},
	{path: meetingsPath + "/calendars", title: english("Calendars"), kinds: persons,
		at: meetingsPath, forms: []*protocol.Operation{protocol.ConnectCalendar.Operation, protocol.CheckCalendar.Operation, protocol.ChooseCalendars.Operation,
			protocol.DisconnectCalendar.Operation, protocol.MakeMeetingFeed.Operation, protocol.DeleteMeetingFeed.Operation},
		read: ofMeetings((*Web).fillCalendars), body: meetingsPage(calendarsBody)},
	{path: meetingsPath + "/:id", title: english("A meeting"), kinds: persons,
		at: meetingsPath, forms: []*protocol.Operation{protocol.ApproveMeeting.Operation, protocol.DeclineMeeting.Operation,
			protocol.ProposeMeetingTimes.Operation, protocol.MoveMeeting.Operation, protocol.CancelOwnMeeting.Operation, protocol.MarkNoShow.Operation},
		read: ofMeetings((*Web).fillMeeting), body: meetingsPage(ownMeetingBody)},
	{path: "/account/followers", title: english("Followers"), about: english("Who follows you from other servers."), kinds: everybody,
		forms: []*protocol.Operation{protocol.RemoveFollower.Operation},
		shows: []*protocol.Operation{protocol.ListFollowers.Operation}, body: followersBody},
	{path: noticesPage, title: english("Notices"), about: english("Where the node tells you what happened."), kinds: everybody,
		forms: []*protocol.Operation{protocol.PutNotify.Operation, protocol.ConfirmMail.Operation, protocol.AddDevice.Operation, protocol.DeleteDevice.Operation},
		shows: []*protocol.Operation{protocol.GetNotify.Operation, protocol.ListDevices.Operation}, body: noticesBody},
	{path: keysPath, title: english("Keys and identity"), about: english("The keys that sign for you, and your identity on a blockchain."),
		kinds: everybody,
		forms: []*protocol.Operation{protocol.MakeKey.Operation, protocol.RetireKey.Operation, protocol.DropIdentity.Operation,
			protocol.ConnectIdentity.Operation}, copies: true,
		shows: []*protocol.Operation{protocol.ListKeys.Operation, protocol.GetIdentity.Operation}, body: keysBody},
	{path: walletPath, title: english("Register an identity"), kinds: everybody, copies: true,
		shows: []*protocol.Operation{protocol.ListKeys.Operation, protocol.GetIdentity.Operation}, body: walletBody},
	{path: tokensPath, title: english("Tokens"), about: english("Let programs of yours act for you."),
		forms: []*protocol.Operation{protocol.CreateToken.Operation, protocol.RevokeToken.Operation},
		read:  []reading{(*account).readTokens}, body: tokensBody},
	{path: invitationsPath, title: english("Invitations"), about: english("Let somebody you know join this node."), invites: true, copies: true,
		forms: []*protocol.Operation{protocol.CreateInvitation.Operation, protocol.WithdrawInvitation.Operation},
		shows: []*protocol.Operation{protocol.ListInvitations.Operation}, body: invitationsBody},
	{path: securityPath, title: english("Security"), about: english("How you sign in, and the browsers that are signed in."),
		forms: []*protocol.Operation{protocol.AddPasskey.Operation, protocol.DeletePasskey.Operation, protocol.RemoveWallet.Operation,
			protocol.MakeRecoveryCodes.Operation,
			protocol.EndSession.Operation, protocol.EndOtherSessions.Operation},
		shows: []*protocol.Operation{protocol.GetSignInMethods.Operation}, read: []reading{(*account).readSessions}, body: securityBody},
	{path: accessPath, title: english("What acts for you"), about: english("Every key, browser, device, wallet and token in one list: name it, or remove it."),
		forms: []*protocol.Operation{protocol.RenameCredential.Operation, protocol.RemoveCredential.Operation},
		shows: []*protocol.Operation{protocol.ListCredentials.Operation}, body: accessBody},
	{path: "/account/data", title: english("Data"), about: english("Download everything, or bring a profile from another node."),
		forms: []*protocol.Operation{protocol.ExportArchive.Operation}, uploads: true, body: dataBody},
	{path: leavePath, title: english("Delete the profile"), about: english("Delete it with everything, or undo that."), kinds: everybody,
		forms: []*protocol.Operation{protocol.DeleteProfile.Operation, protocol.RestoreProfile.Operation}, body: leaveBody},
	{path: "/account/close", title: english("Close the account"), about: english("Close it and delete its profiles."),
		forms: []*protocol.Operation{protocol.CloseAccount.Operation, protocol.RestoreProfile.Operation},
		shows: []*protocol.Operation{protocol.GetSignInMethods.Operation}, body: closeBody},
	{path: "/account/settings", title: english("Name and mail"), about: english("Your name on this node, and where sign-in links go."),
		forms: []*protocol.Operation{protocol.PutAccount.Operation, protocol.PutAccountMail.Operation, protocol.ConfirmAccountMail.Operation},
		shows: []*protocol.Operation{protocol.GetAccountMail.Operation}, body: settingsBody},
	{path: nodePath, title: english("This node"),
		about: english("For operators: what was reported, peers, blocks, health, jobs, numbers, audit."), node: true},
}

// An ownerNav leads between the pages of an account.
type ownerNav struct {
	account protocol.Account
	path    string // of the current page
	handle  string // of the profile whose pages it shows, "" for none
	invites int    // how many others the node lets an owner invite
}

// ownerNav returns the navigation of an account's page; nil when nobody is signed in.
func (s *Web) ownerNav(r *http.Request, path, handle string) *ownerNav {
	n := &ownerNav{path: path, invites: s.Accounts.Invites()}
	if s.invokeSignedIn(r, protocol.GetAccount.Operation, protocol.None{}, &n.account) != nil {
		return nil
	}
	if handle == "" {
		handle = r.FormValue("handle")
	}
	for _, p := range n.account.Profiles {
		if n.handle == "" || p.Handle == handle {
			n.handle = p.Handle
		}
	}
	if path == "/account" { // a page with a route of its own
		n.path = r.URL.Path
	}
	return n
}

// profile returns the profile whose pages the navigation shows.
func (n *ownerNav) profile() (h protocol.HeldProfile) {
	for _, p := range n.account.Profiles {
		if p.Handle == n.handle {
			return p
		}
	}
	return h
}

// links are the pages of the navigation.
func (n *ownerNav) links() (pages []accountPage) {
	for _, p := range accountPages {
		if p.shown(n.account, n.invites) && (p.path == "/account" || p.about != "" && (!p.own() || p.has(n.profile()))) {
			pages = append(pages, p)
		}
	}
	return pages
}

// here reports whether the page is the current one, or leads to it.
func (n *ownerNav) here(p accountPage) bool {
	return p.path == n.path || p.path != "/account" && strings.HasPrefix(n.path, p.path+"/")
}

// to returns the path of a page for the profile of the navigation.
func (n *ownerNav) to(p accountPage) string {
	if p.own() {
		return p.to(n.handle)
	}
	return p.path
}

// An indexGroup is a part of the index: the pages of a profile, or of the account.
type indexGroup struct {
	profile protocol.HeldProfile // zero for the account
	pages   []accountPage
}

// index returns the parts of the index.
func index(who protocol.Account, invites int) (groups []indexGroup) {
	for _, h := range append(who.Profiles[:len(who.Profiles):len(who.Profiles)], protocol.HeldProfile{}) {
		g := indexGroup{profile: h}
		for _, p := range accountPages {
			if p.about != "" && (p.has(h) || h.Handle == "" && !p.own() && p.shown(who, invites)) {
				g.pages = append(g.pages, p)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// ask asks an operation, about the page's profile if it has one.
func (a *account) ask(s *Web, r *http.Request, op *protocol.Operation, args map[string]any) error {
	if _, ok := memberAt(op.In, "handle"); ok && a.Page.own() {
		args["handle"] = a.Handle
	}
	return a.answers.ask(s, r, op, args)
}

// show asks an operation for what the page shows; a list from where the address says.
func (a *account) show(s *Web, r *http.Request, op *protocol.Operation) error {
	args := map[string]any{}
	if _, ok := memberAt(op.In, "after"); ok && r.URL.Query().Get("after") != "" {
		args["after"] = r.URL.Query().Get("after")
	}
	err := a.ask(s, r, op, args)
	if next := a.next(op); next != nil {
		a.More = a.Page.path + "?" + strings.TrimPrefix(query("handle", a.Handle)+"&", "handle=&") + query("after", *next)
	}
	return err
}

func (a *account) readSessions(s *Web, r *http.Request) error {
	return a.ask(s, r, protocol.ListSessions.Operation, map[string]any{"limit": protocol.MaxLimit})
}

// readTokens collects the valid tokens. The list also contains any number of revoked and expired
// ones.
func (a *account) readTokens(s *Web, r *http.Request) error {
	args := map[string]any{"limit": protocol.MaxLimit}
	for range maxTokenPages {
		var page protocol.Page[protocol.Token]
		if err := s.invokeSignedIn(r, protocol.ListTokens.Operation, args, &page); err != nil {
			return err
		}
		for _, t := range page.Items {
			if t.RevokedAt == nil && (t.ExpiresAt == nil || t.ExpiresAt.After(time.Now())) {
				a.Tokens = append(a.Tokens, t)
			}
		}
		if page.Next == nil || len(a.Tokens) >= protocol.MaxTokens {
			break
		}
		args["after"] = *page.Next
	}
	return nil
}
