package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage/storagetest"
)

// A formOf is a form whose operation is tried by HTTP too.
type formOf struct {
	op             *protocol.Operation
	action, id     string              // where it is sent; its id on the page
	purpose        string              // of its proof of work; "" for the owner's form
	fixed          map[string]string   // members of the input that the form or its path fixes
	fields         map[string][]string // what may be typed into each field, the first one good; "" leaves it out
	lists, numbers []string            // fields with several values, and with whole numbers
	boxes          []string            // fields that are false without a tick
	part           string              // of an edit of several
	read           string              // path at which the effect is read
}

var (
	shortTexts = []string{"Good cloth", "", strings.Repeat("x", 4100), "two\nlines", "<b>bold</b>", "a\u202eb", "   ", "नमस्ते"}
	longTexts  = []string{"About looms.", "", strings.Repeat("long ", 900), "two\nlines", "<script>x</script>", "a\u0007b", "  "}
	addresses  = []string{"", "https://example.org/a", "http://example.org", "javascript:alert(1)", "nonsense"}
	amounts    = []string{"1500", "", "12.345", "-4", "much", "99999999999"}
	smallInts  = []string{"3", "", "0", "-1", "4000", "many", "2.5"}
	someTags   = []string{"", "cloth, silk", "b@d", strings.Repeat("a,", 14) + "z", "Cloth"}
)

func formsOf(post, thread string) []formOf {
	posted := map[string][]string{"kind": {"offer", "question", "rumour", ""}, "title": shortTexts,
		"body": longTexts, "tags": someTags, "name": {"", "Kim", strings.Repeat("n", 61)}}
	answer := maps.Clone(posted)
	delete(answer, "tags")
	return []formOf{
		{op: protocol.PostToBoard.Operation, action: "/board", id: "post", purpose: "board", fields: posted, lists: []string{"tags"},
			read: "/api/public/board?limit=3"},
		{op: protocol.PostToBoard.Operation, action: "/board/" + post, id: "reply", purpose: "board", fields: answer, fixed: map[string]string{"inReplyTo": post},
			read: "/api/public/board/" + post},
		{op: protocol.ReportPost.Operation, action: "/board/" + post, id: "report", purpose: "report", fixed: map[string]string{"id": post},
			fields: map[string][]string{"reason": shortTexts}, read: "/api/public/board/" + post},
		{op: protocol.ContactAgent.Operation, action: "/@asha", id: "write", purpose: "contact", fixed: map[string]string{"handle": "asha"},
			fields: map[string][]string{"message": longTexts, "kind": {"question", "", "spam"}, "name": {"", "Kim", strings.Repeat("n", 61)}},
			read:   "/api/owner/threads?handle=asha&limit=3"},
		{op: protocol.BidForAttention.Operation, action: "/@asha/board", id: "bid", purpose: "bid", fixed: map[string]string{"handle": "asha"},
			fields: map[string][]string{"amount": amounts, "message": shortTexts, "name": {"", "Kim"}, "url": addresses}, read: "/api/owner/bids?handle=asha"},
		{op: protocol.AnswerThread.Operation, action: "/account/threads/" + thread, id: "answer", fixed: map[string]string{"threadId": thread},
			fields: map[string][]string{"message": longTexts}, read: "/api/owner/threads/" + thread},
		{op: protocol.PutNeed.Operation, action: "/account", id: "put_need-asha", fixed: map[string]string{"handle": "asha"}, lists: []string{"tags"},
			fields: map[string][]string{"id": {"wool", "silk", "", "Bad Id", "x"}, "description": longTexts, "tags": someTags}, read: "/api/owner/needs?handle=asha"},
		{op: protocol.PutCapability.Operation, action: "/account", id: "put_capability-asha", fixed: map[string]string{"handle": "asha"}, lists: []string{"tags"},
			fields: map[string][]string{"id": {"weave", "spin", "", "Bad Id"}, "name": shortTexts, "description": longTexts, "tags": someTags,
				"input":    {"", "yarn", shortTexts[2]},
				"endpoint": addresses}, read: "/api/owner/capabilities?handle=asha"},
		{op: protocol.PutNotify.Operation, action: "/account", id: "put_notify-asha", fixed: map[string]string{"handle": "asha"},
			fields: map[string][]string{"webhook": addresses, "mail": {"", "asha@example.org", "not mail"}}, read: "/api/owner/notify?handle=asha"},
		{op: protocol.PutItem.Operation, action: "/account", id: "item", part: "item", read: "/api/owner/merchant/items?handle=rao",
			fixed: map[string]string{"handle": "rao", "sku": "dosa"}, lists: []string{"tags"},
			fields: map[string][]string{"name": {"Dosa", "", strings.Repeat("n", 121), "two\nlines"}, "description": longTexts,
				"unit": {"", "plate", strings.Repeat("u", 41)}, "category": {"", "Breakfast", shortTexts[2]}, "tags": someTags,
				"availability": {"in_stock", "out_of_stock", "perhaps"}, "url": addresses, "barcode": {"", "8901", "x"}}},
		{op: protocol.PutAttentionBoard.Operation, action: "/account/attention", id: "put_attention_board-asha", fixed: map[string]string{"handle": "asha"},
			fields: map[string][]string{"rules": longTexts, "floor": amounts, "step": amounts, "slots": smallInts, "slotDays": smallInts, "protectHours": smallInts,
				"respondWithinDays": {"", "3", "99"}, "accepting": {"true", ""}, "autoApprove": {"true", ""}, "refundIfNoReply": {"", "true"}},
			numbers: []string{"slots", "slotDays", "protectHours", "respondWithinDays"}, boxes: []string{"accepting", "autoApprove", "refundIfNoReply"},
			read: "/api/owner/attention?handle=asha"},
		{op: protocol.PutPaymentAccount.Operation, action: "/account/attention", id: "put_payment_account-asha", fixed: map[string]string{"handle": "asha"},
			fields: map[string][]string{"provider": {"upi", "razorpay", "gold"}, "vpa": {"asha@okbank", "", "nonsense"},
				"payeeName": shortTexts, "gstin": {"", "29ABCDE1234F1Z5", "x"},
				"gstPercent": {"", "18", "200"}, "address": {"", "MG Road", longTexts[2]}}, read: "/api/owner/payment-account?handle=asha"},
		{op: protocol.PutMeetingSettings.Operation, action: "/account/meetings", id: "put_meeting_settings", fixed: map[string]string{"handle": "asha"},
			fields: map[string][]string{"timezone": {"Asia/Kolkata", "", "Mars/Base"}, "location": {"", "https://meet.example/a", "two\nlines"}, "policy": longTexts,
				"bufferBefore": {"", "10", "999", "many"}, "maxDaysAhead": {"", "30", "0", "91"}, "acceptingMeetingRequests": {"true", ""}, "showSlots": {"", "true"},
				"pendingBlocksSlot": {"true", ""}, "reminders": {"true", ""}, "requireVerifiedDomain": {"", "true"}},
			numbers: []string{"bufferBefore", "maxDaysAhead"},
			boxes:   []string{"acceptingMeetingRequests", "showSlots", "pendingBlocksSlot", "reminders", "requireVerifiedDomain"},
			read:    "/api/owner/meeting-settings?handle=asha"},
	}
}

// input is what was typed as the operation's input over HTTP.
func (f formOf) input(typed map[string]string) map[string]any {
	args := map[string]any{}
	if f.op == protocol.PutMeetingSettings.Operation { // the form shows the whole week
		args["usualHours"] = []any{}
	}
	for name, text := range f.fixed {
		args[name] = text
	}
	for name, text := range typed {
		n, err := strconv.Atoi(text)
		switch {
		case slices.Contains(f.boxes, name):
			args[name] = text != ""
		case strings.TrimSpace(text) == "" && (text == "" || f.id != "put_need-asha" && f.id != "put_capability-asha"): // is left out
		case slices.Contains(f.lists, name):
			list := []string{}
			for part := range strings.SplitSeq(text, ",") {
				list = append(list, strings.ToLower(strings.TrimSpace(part)))
			}
			args[name] = list
		case slices.Contains(f.numbers, name) && err == nil:
			args[name] = n
		default:
			args[name] = text
		}
	}
	return args
}

var changing = regexp.MustCompile(`"[a-z]+_[0-7][0-9a-hjkmnp-tv-z]{25}"|[a-z]+_[0-7][0-9a-hjkmnp-tv-z]{25}|` +
	`20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+\d\d:\d\d)|http://127\.0\.0\.1:\d+|"next":"[^"]*"`)

// TestEquivalence_Forms is the forms' column of the equivalence of doors: what is typed into a form, good and bad, has the effect that
// the same input has over HTTP on a node with the same past, and each fault is shown at its field, or above the form.
func TestEquivalence_Forms(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(storagetest.Seed(t), 7))
	type side struct {
		*house
		cookie, token, shop, post, thread string
		forms                             []formOf
	}
	newSide := func() *side {
		h, cookie := newServed(t)
		s := &side{house: h, cookie: cookie, token: "Bearer " + ownerToken(t, h.Node, "asha"),
			shop: "Bearer " + ownerToken(t, h.Node, "rao"), post: h.post("Looms").ID}
		var begun protocol.ContactReceipt
		h.ask("POST", "/api/public/agents/asha/contact", `{"message":"Are you there?"}`, "Proof-Of-Work", h.proof("contact")).into(&begun)
		s.thread = begun.ThreadID
		s.forms = formsOf(s.post, s.thread)
		return s
	}
	byHTTP, byForm := newSide(), newSide()
	bearer := func(s *side, path string) string {
		if strings.HasSuffix(path, "handle=rao") {
			return s.shop
		}
		return s.token
	}
	read := func(s *side, path string) string {
		t.Helper()
		a := s.ask("GET", path, "", "Authorization", bearer(s, path))
		require.Equal(t, 200, a.Code, "%s %s", path, a.Body)
		return changing.ReplaceAllString(a.Body.String(), "…")
	}
	for i, f := range byForm.forms {
		t.Run(f.op.Name+" "+f.id, func(t *testing.T) {
			done, refused := 0, 0
			for round := range storagetest.Rounds(t, 80) {
				typed := map[string]string{}
				for _, name := range slices.Sorted(maps.Keys(f.fields)) {
					values := f.fields[name]
					typed[name] = values[0]
					if round > 0 && dice.IntN(3) == 0 {
						typed[name] = values[dice.IntN(len(values))]
					}
				}
				for _, name := range []string{"body", "message"} { // texts that are alike cost more
					if f.fields[name] != nil && typed[name] == f.fields[name][0] {
						typed[name] = fmt.Sprintf("%d: %s", round, strings.Repeat(strconv.FormatUint(dice.Uint64(), 36)+" ", 1+round%7))
					}
				}
				about := fmt.Sprintf("round %d:", round)
				for name, text := range typed {
					about += fmt.Sprintf(" %s=%.30q", name, text)
				}

				other := byHTTP.forms[i]
				args := other.input(typed)
				path, method := other.op.HTTP.Path, other.op.HTTP.Method
				for name, value := range args {
					if at := "{" + name + "}"; strings.Contains(path, at) {
						path = strings.ReplaceAll(path, at, url.PathEscape(fmt.Sprint(value)))
						delete(args, name)
					}
				}
				body, err := json.Marshal(args)
				require.NoError(t, err)
				headers := []string{"Authorization", bearer(byHTTP, f.read), "Content-Type", "application/json"}
				form := url.Values{"do": {f.op.Name}}
				for name, text := range typed {
					if text != "" || !slices.Contains(f.boxes, name) {
						form.Set(name, text)
					}
				}
				var session []string
				if f.purpose != "" {
					headers = []string{"Proof-Of-Work", byHTTP.proof(f.purpose)}
					form.Set("altcha", byForm.proof(f.purpose))
				} else {
					form.Set("handle", "asha")
					for name, text := range f.fixed {
						form.Set(name, text)
					}
					form.Set("part", f.part)
					session = []string{"Cookie", "stoa_session=" + byForm.cookie}
				}
				want := byHTTP.ask(method, path, string(body), headers...)
				got := byForm.sendForm(f.action, form, session...)
				if want.Code < 300 {
					done++
					require.Contains(t, []int{200, http.StatusSeeOther}, got.Code, "%s: %s", about, parsePage(t, f.action, got.Body.String()).alerts())
				} else {
					refused++
					p := want.problem()
					d := parsePage(t, f.action, got.Body.String())
					require.Equal(t, want.Code, got.Code, "%s: %s", about, want.Body)
					d.showsFaults(p.Errors, about)
				}
				require.Equal(t, read(byHTTP, other.read), read(byForm, f.read), about)
			}
			require.Positive(t, done)
			require.Positive(t, refused)
		})
	}
}

// showsFaults checks that the faults of an input are at the fields of the form, or above it, and that no other field is marked.
func (d *pageDoc) showsFaults(faults []protocol.Fault, about string) {
	d.t.Helper()
	marked := map[string]bool{}
	for _, n := range d.nodes() {
		if attr(n, "aria-invalid") == "true" {
			marked[attr(n, "name")] = true
		}
	}
	for _, f := range faults {
		name := strings.Split(strings.TrimPrefix(f.Pointer, "/"), "/")[0]
		require.True(d.t, marked[name] || strings.Contains(d.alerts(), f.Detail),
			"%s: the fault of %s (%s) is not shown; marked are %v", about, f.Pointer, f.Detail, marked)
	}
	for name := range marked {
		require.True(d.t, slices.ContainsFunc(faults, func(f protocol.Fault) bool { return strings.HasPrefix(f.Pointer, "/"+name) }), "%s: %s is marked", about, name)
	}
}
