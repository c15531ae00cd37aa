package node_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/session"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// Kinds of secrets.
const (
	ofThread    = "read token of a thread"
	ofBid       = "status token of a bid"
	ofPayment   = "secret of a payment page"
	ofBidLink   = "link that decides on a bid"
	ofMeeting   = "status token of a meeting request"
	ofReader    = "link that opens a meeting request"
	ofMailbox   = "link that confirms a mailbox"
	ofStop      = "link that stops mail"
	ofDecision  = "link that decides on a meeting request"
	ofEvent     = "address of a meeting's calendar file"
	ofCalendar  = "address of a calendar"
	ofComplaint = "read token of a complaint"
	ofAnswer    = "link to the mailbox of a complaint"
	ofToken     = "API token"
	ofSession   = "session"
	ofSignIn    = "sign-in link"
	ofNotices   = "code of an address for notices"
	ofMail      = "code of an account's address"
	ofPost      = "secret of an anonymous post"
	ofClaim     = "link that gives a profile"
	ofArchive   = "link to an archive"
	ofUndo      = "link that undoes a deletion"
	ofOrder     = "address of an order"
	ofCheckout  = "address of a checkout"
)

// opens has the kinds of secrets by which an operation opens a thing, besides who may without any.
var opens = map[string][]string{
	"get_bid": {ofBid}, "withdraw_bid": {ofBid}, "dispute_payment": {ofBid},
	"get_payment": {ofPayment, ofBid}, "claim_payment": {ofPayment, ofBid}, "press_sandbox": {ofPayment, ofBid},
	"read_bid_link": {ofBidLink}, "use_bid_link": {ofBidLink},
	"get_meeting": {ofMeeting, ofReader}, "get_meeting_ics": {ofMeeting, ofReader}, "cancel_meeting": {ofMeeting, ofReader},
	"pick_meeting_time": {ofMeeting, ofReader},
	"read_meeting_link": {ofMailbox, ofStop}, "use_meeting_link": {ofMailbox, ofStop},
	"read_decision_link": {ofDecision}, "use_decision_link": {ofDecision},
	"read_complaint": {ofComplaint, ofAnswer}, "confirm_complaint_mail": {ofAnswer},
	"check_conversation": {ofThread}, "continue_conversation": {ofThread}, "delete_message": {ofThread}, "whats_new": {ofThread, ofBid, ofMeeting},
	"read_claim": {ofClaim}, "claim_profile": {ofClaim},
	"fetch_archive": {ofArchive}, "undo_deletion": {ofUndo},
	"read_order": {ofOrder}, "cancel_order": {ofOrder}, "read_checkout": {ofCheckout}, "review_order": {ofOrder}, "confirm_order_mail": {ofOrder},
	"add_device":   {ofThread},
	"delete_post":  {ofPost},
	"confirm_mail": {ofNotices}, "confirm_account_mail": {ofMail},
}

// A secretsWorld has one secret of every kind, all of things of asha that are in a state in which a secret opens them.
type secretsWorld struct {
	*wallsWorld
	secrets map[string]string
	ids     map[string]any // of the bid, the meeting request and the thread, by their prefix
}

func newSecrets(t *testing.T) *secretsWorld {
	w := &secretsWorld{wallsWorld: newWalls(t), secrets: map[string]string{}}
	d, n := w.Doors, w.House
	put := func(fn func(ctx context.Context, tx *storage.Tx) error) {
		t.Helper()
		require.NoError(t, n.DB.Write(t.Context(), fn))
	}
	const mail, mailbox = "asha@example.org", "ravi@example.org"
	d.Reopen(protocol.PayUPI)
	bid, begun := d.NewBid(), w.writes()
	w.secrets[ofPayment] = bid.PaymentURL[strings.LastIndexByte(bid.PaymentURL, '/')+1:]
	d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+w.secrets[ofPayment]+`"}`, "", nil)
	asked, status := nodetest.StoredMeeting(protocol.MeetingSubmitted, time.Now().UTC().Add(99*time.Hour).Truncate(time.Hour))
	waits, _ := nodetest.StoredMeeting(protocol.MeetingUnconfirmed, asked.StartsAt)
	_, err := rand.Read(asked.Mailbox[:])
	require.NoError(t, err)
	asked.Confirmed, asked.Mail, waits.Mailbox, waits.Shown = true, mailbox, asked.Mailbox, false
	w.ids = map[string]any{protocol.BidID: bid.Bid.ID, protocol.MeetingID: asked.ID, protocol.ThreadID: begun.ThreadID}
	post := nodetest.As[protocol.MadePost](n.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", n.Proof("board")).Is(201))
	w.ids[protocol.PostID], w.secrets[ofPost] = post.ID, post.DeleteToken
	put(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: mail, Confirmed: true, Links: true}); err != nil {
			return err
		}
		if err := tx.Meetings().Insert(ctx, asked); err != nil {
			return err
		}
		return tx.Meetings().Insert(ctx, waits)
	})
	told := complained(n)
	w.ids[protocol.ComplaintID], w.secrets[ofComplaint], w.secrets[ofAnswer] = told["id"], told["given"], told["ticket"]
	put(func(ctx context.Context, tx *storage.Tx) error {
		c, err := tx.Complaints().ByID(ctx, told["id"])
		if err != nil {
			return err
		}
		c.Confirmed = true
		return tx.Complaints().Update(ctx, c)
	})
	put(func(ctx context.Context, tx *storage.Tx) error {
		link, err := n.Attention.LinkFor(ctx, tx, bid.Bid.ID, "asha", mail)
		if err != nil {
			return err
		}
		decision, err := n.Meeting.LinkFor(ctx, tx, asked.ID, "asha", mail)
		w.secrets[ofBidLink], w.secrets[ofDecision] = link.Ticket, decision.Ticket
		return err
	})
	id, box := strings.TrimPrefix(asked.ID, protocol.MeetingID+"_"), base64.RawURLEncoding.EncodeToString(asked.Mailbox[:])
	maps.Copy(w.secrets, map[string]string{
		ofThread: begun.ReadToken, ofBid: bid.StatusToken, ofMeeting: status, ofToken: n.OwnerToken("asha"), ofSession: w.cookie(w.account),
		ofReader:  w.meetingTicket("v", id, asked.ID, mailbox),
		ofMailbox: w.meetingTicket("m", box, box, time.Now().UTC().Truncate(14*24*time.Hour).Format(time.DateOnly)),
		ofStop:    w.meetingTicket("s", box, box),
		ofEvent:   w.meetingTicket("e", id, asked.ID),
	})
	var feed protocol.MeetingFeed
	d.Good("POST", "/api/owner/meeting-feed", `{"handle":"asha"}`, d.Token, &feed)
	w.secrets[ofCalendar] = strings.TrimSuffix(feed.URL[strings.LastIndexByte(feed.URL, '/')+1:], ".ics")
	for kind, x := range map[string]storage.Ticket{
		ofSignIn:  {Purpose: storage.TicketSignIn, Account: w.account},
		ofNotices: {Purpose: storage.TicketNoticeMail, Account: w.account, Handle: "asha", Mail: mail},
		ofMail:    {Purpose: storage.TicketAccountMail, Account: w.account, Handle: "asha", Mail: mail},
	} {
		w.secrets[kind], x.Hash = session.New(session.Ticket)
		x.ExpiresAt = time.Now().Add(time.Hour)
		put(func(ctx context.Context, tx *storage.Tx) error { return tx.Tickets().Insert(ctx, x) })
	}
	put(func(ctx context.Context, tx *storage.Tx) error {
		secret, hash := session.New(session.Ticket)
		w.secrets[ofClaim] = secret
		return tx.Joins().Put(ctx, storage.Joined{Handle: "asha", Way: storage.JoinedSigned, At: tx.Now, Claim: hash[:], ClaimUntil: tx.Now.Add(time.Hour)})
	})
	put(func(ctx context.Context, tx *storage.Tx) error {
		link, err := n.Archive.MakeLink(ctx, tx, protocol.Caller{Standing: protocol.Operator}, protocol.HandleInput{Handle: "asha"})
		_, w.secrets[ofArchive], _ = strings.Cut(link.URL, "ticket=")
		return err
	})
	w.secrets[ofOrder] = w.ordered().Token
	w.secrets[ofCheckout] = w.checkout(from{}).Token
	n.Hosted("leaver")
	n.Ask("DELETE", "/api/owner/profile", "", "Authorization", "Bearer "+n.OwnerToken("leaver")).Is(200)
	put(func(ctx context.Context, tx *storage.Tx) error {
		link, err := n.Accounts.UndoLink(ctx, tx, "leaver")
		_, w.secrets[ofUndo], _ = strings.Cut(link, "ticket=")
		return err
	})
	put(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Accounts().SetPendingMail(ctx, w.account, mail)
	})
	return w
}

// meetingTicket is a ticket of the room of meetings.
func (w *secretsWorld) meetingTicket(kind, name string, parts ...string) string {
	mac := hmac.New(sha256.New, w.House.Meeting.LinkKey)
	mac.Write([]byte(strings.Join(append([]string{"meeting link", kind}, parts...), "\x00")))
	return protocol.ReadTokenPrefix + kind + name + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

// like is a new secret of the form of another, which opens nothing.
func like(secret string) string {
	for _, kind := range []session.Kind{session.Token, session.Cookie, session.Ticket} {
		if _, ok := session.Hash(kind, secret); ok && !strings.HasPrefix(secret, protocol.ReadTokenPrefix) {
			fresh, _ := session.New(kind)
			return fresh
		}
	}
	return protocol.NewReadToken()
}

// secretOf is where an operation takes a secret, "" for nowhere.
func secretOf(op *protocol.Operation) string {
	if _, ticket := op.In.FieldByName("Ticket"); ticket && op.Secret == "" && len(opens[op.Name]) > 0 {
		return "ticket"
	} else if op.Secret == "" && len(opens[op.Name]) > 0 {
		return "code"
	}
	return op.Secret
}

// tries calls an operation with a secret: in the member that takes one, as a bearer, as the cookie of a session.
func (w *secretsWorld) tries(op *protocol.Operation, secret string) map[string]outcome {
	w.t.Helper()
	args, all := exampleOf(op), map[string]outcome{}
	delete(args, secretOf(op))
	for name := range args {
		for kind, id := range w.ids {
			if s, ok := args[name].(string); ok && strings.HasPrefix(s, kind+"_") {
				args[name] = id
			}
		}
	}
	who := func(c protocol.Caller) from { // nobody, with a proof where one is taken
		if op.Access&protocol.Proof == 0 {
			return from{bearer: c.ReadToken}
		}
		c.Standing, c.Network = protocol.Proof, "elsewhere"
		return from{caller: &c}
	}
	with := maps.Clone(args)
	with[secretOf(op)] = secret
	if op.Secret == "" { // the owner sends it
		all["in its member"] = w.call(op, with, from{cookie: w.cookie(w.account)})
		return all
	}
	all["in its member"] = w.call(op, with, who(protocol.Caller{}))
	if strings.HasPrefix(secret, protocol.ReadTokenPrefix) {
		all["as a bearer"] = w.call(op, args, who(protocol.Caller{ReadToken: secret}))
	}
	return all
}

// TestSecrets tries every kind of secret in the place of every other, in every operation that takes one, about the very
// thing that the secret is of: the answer is the one for a secret that opens nothing, and nothing changes. Then those
// that open it do.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newSecrets(t)
	var operations []*protocol.Operation
	for _, reads := range []bool{true, false} { // what changes something comes last
		for _, op := range protocol.Operations() {
			if op.Secret != "" {
				require.NotEmpty(t, opens[op.Name], "%s takes the secret %s and has no row in opens", op.Name, op.Secret)
			}
			if secretOf(op) != "" && op.ReadOnly == reads {
				operations = append(operations, op)
			}
		}
	}
	require.Len(t, operations, len(opens), "opens has rows of operations that do not exist")
	before := w.rows(operations[0], w.ids)
	require.NotEmpty(t, before)
	nothing := func(op *protocol.Operation, secret string) map[string]outcome { return w.tries(op, like(secret)) }
	for _, op := range operations {
		for kind, secret := range w.secrets {
			if slices.Contains(opens[op.Name], kind) {
				continue
			}
			want := nothing(op, secret)
			for how, got := range w.tries(op, secret) {
				require.Equal(t, want[how], got, "%s with the %s %s", op.Name, kind, how)
				require.Contains(t, []protocol.Code{protocol.NotFound, protocol.Unauthorized, protocol.Gone, protocol.PowRequired, protocol.Validation},
					got.Code, "%s with the %s %s", op.Name, kind, how)
			}
		}
	}
	require.Equal(t, before, w.rows(operations[0], w.ids), "nothing changed")
	for _, op := range operations {
		for _, kind := range opens[op.Name] {
			refused, got := nothing(op, w.secrets[kind]), w.tries(op, w.secrets[kind])
			require.NotEqual(t, refused, got, "%s with its %s", op.Name, kind)
			for how := range got {
				if op.ReadOnly { // otherwise the first use may have ended it
					require.NotEqual(t, refused[how], got[how], "%s with its %s %s", op.Name, kind, how)
				}
			}
		}
	}
}

// TestSecrets_Bearer: a secret that is not a token admits nobody as a bearer, and one that is not a session not as a
// cookie, in all other operations.
func TestSecrets_Bearer(t *testing.T) {
	t.Parallel()
	w := newSecrets(t)
	for _, op := range protocol.Operations() {
		if op.Local || secretOf(op) != "" {
			continue
		}
		args := exampleOf(op)
		nobody := w.call(op, args, from{})
		for kind, secret := range w.secrets {
			if kind != ofToken {
				require.Equal(t, protocol.Unauthorized, w.call(op, args, from{bearer: secret}).Code, "%s with the %s as a bearer", op.Name, kind)
			}
			if kind != ofSession && op.Access != protocol.Anonymous {
				require.Equal(t, nobody, w.call(op, args, from{cookie: secret}), "%s with the %s as a cookie", op.Name, kind)
			}
		}
	}
}

// TestSecrets_Addresses: the addresses that have a secret in them, and signing in, open with their own kind only.
func TestSecrets_Addresses(t *testing.T) {
	t.Parallel()
	w := newSecrets(t)
	approved, _ := nodetest.StoredMeeting(protocol.MeetingApproved, time.Now().UTC().Add(200*time.Hour).Truncate(time.Hour))
	require.NoError(t, w.House.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Meetings().Insert(ctx, approved) }))
	w.secrets[ofEvent] = w.meetingTicket("e", strings.TrimPrefix(approved.ID, protocol.MeetingID+"_"), approved.ID)
	for _, kind := range slices.Sorted(maps.Keys(w.secrets)) {
		for path, own := range map[string]string{"/feeds/cal/": ofCalendar, "/feeds/meeting/": ofEvent} {
			want := map[bool]int{true: 200, false: 404}[kind == own]
			require.Equal(t, want, w.House.Ask("GET", path+w.secrets[kind]+".ics", "").Code, "%s with the %s", path, kind)
		}
		var cookie string
		err := w.House.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
			cookie, err = w.House.Accounts.SignIn(ctx, tx, session.Browser{}, w.secrets[kind])
			return err
		})
		if kind == ofSignIn {
			require.NoError(t, err)
			require.NotEmpty(t, cookie)
			continue
		}
		require.Equal(t, protocol.Gone, protocol.CodeOf(err), kind)
	}
}
