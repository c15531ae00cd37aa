package node_test

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage/storagetest"
)

// A formRow is a form of the pages: what it does, where it is, and what may be typed into it.
type formRow struct {
	op   *protocol.Operation
	page string // where the form is; members of about are in braces
	part string // of what the operation replaces, where the form changes a part only
	id   string // of the form, or the name of a field of it, where nothing in it names its operation
	// about makes what the form is about, anew for each round: members of the input, hidden fields, what page and read name. Without it
	// there is what doors.own makes.
	about func(*formSide) map[string]string
	// show returns a page that has the form, where that is the answer to another form.
	show   func(*formSide, map[string]string) *nodetest.Page
	fields map[string][]string         // what may be typed into each field, the first one good; {n} is another number each time, {day} a day soon
	to     map[string]string           // the member of the input that a field is, dots between names, where that has another name; "" for none
	as     map[string]func(string) any // what a text means, nil for nothing, where that is not what its type in the schema says
	args   func(s *formSide, typed map[string]string, args map[string]any)
	at     [][2]string // patterns of pointers of faults, and the fields that show them; * is the rest of a name
	read   string      // paths at which the effect is read
	never  string      // why it does nothing here but refuse; "" for a form that also does its operation
}

func (f formRow) name() string {
	if f.part != "" {
		return f.op.Name + "-" + f.part
	}
	return f.op.Name + " " + f.id
}

// TestEquivalence_Forms is the forms' column of the equivalence of doors: what is typed into any form of the pages, good and bad, has
// the effect that the same input has over HTTP on a node with the same past. Each fault is shown at its field in words of the reader's
// language, and what was typed is kept. Nothing here runs a script, so the forms work without.
func TestEquivalence_Forms(t *testing.T) {
	t.Parallel()
	seed := storagetest.Seed(t)
	byHTTP, byForm := newFormSide(t), newFormSide(t)
	byForm.day = time.Now().Add(96 * time.Hour).In(protocol.India).Format(time.DateOnly)
	byHTTP.day = byForm.day
	types := inputTypes(byForm.House)
	n := 0
	for _, f := range formRows() {
		t.Run(f.name()+" at "+f.page, func(t *testing.T) {
			for _, s := range []*formSide{byHTTP, byForm} {
				s.House = s.On(t)
				s.d.T, s.d.House = t, s.House
			}
			row := fnv.New64a()
			io.WriteString(row, t.Name()) // so that a further row changes nothing in the others
			dice, longest := rand.New(rand.NewPCG(seed, row.Sum64())), 0
			for _, values := range f.fields {
				longest = max(longest, len(values))
			}
			rounds := 1
			if longest > 0 {
				rounds = storagetest.Rounds(t, 4+4*longest)
			}
			if f.part == "" {
				rounds++ // the same again; of a record that HTTP writes as a whole no part can be gone
			}
			var there, here map[string]string // what the form is about on both sides
			var x, refused sentForm
			done, anew := 0, true
			for round := range rounds {
				n++
				again := f.part == "" && round == rounds-1
				nodetest.Tick() // lists on both sides are in the order of what was made
				if anew && !again {
					there, here = f.made(byHTTP), f.made(byForm)
					nodetest.Tick()
					x = f.open(byForm, here)
				}
				typed := f.typed(dice, round, n, byForm.day)
				if again {
					typed = f.typed(dice, 0, n, byForm.day)
					x.visit(n)
				}
				about := fmt.Sprintf("round %d:", round)
				for name, text := range typed {
					about += fmt.Sprintf(" %s=%.30q", name, text)
				}
				want := f.byHTTP(byHTTP, f.input(byHTTP, types[f.op.Name], there, given(typed, there)), there)
				x.fill(byForm, f, given(typed, here))
				got := x.send(byForm, f, here)
				d := byForm.parse(f.page, got)
				if anew = want.Code < 300; anew {
					done++
					require.Contains(t, []int{200, http.StatusSeeOther}, got.Code, "%s: %s", about, d.Alerts())
				} else {
					require.Equal(t, want.Code, got.Code, "%s: %s\n%s", about, want.Body, d.Alerts())
					require.NotEmpty(t, strings.TrimSpace(d.Text()), about)
					d.Plain(about)
					d.Spaced()
					if faults := want.Problem().Errors; len(faults) > 0 {
						refused = x
						f.showsFaults(d, faults, x, about)
						f.kept(d, here, typed, about)
					}
					if form := f.find(d, here); form != nil { // who is refused corrects what was typed
						x = f.found(form, here)
					} else {
						anew = true
					}
				}
				require.Equal(t, f.effect(byHTTP, there), f.effect(byForm, here), about)
			}
			require.Equal(t, f.never == "", done > 0, "it did its operation %d times", done)
			if refused.form != nil {
				f.speaksHindi(refused.send(byForm, f, here, "Accept-Language", "hi"))
			}
		})
	}
	if !t.Failed() {
		byForm.complete(t)
	}
}

// withoutOperation are the forms that do no operation, by the routes that they are sent to.
var withoutOperation = map[string]string{
	"/language": "keeps a cookie",

	"/account/keys/register": "is for scripts, and stores nothing: TestWalletPage",

	"/confirm/:link":     "does the operation of a draft: TestBrowser_Confirm, TestConfirm",
	"/join/code":         "takes a code of a letter: TestBrowser_Join",
	"/join/confirm":      "takes the link of a letter: TestBrowser_JoinPerson",
	"/operator":          "takes the link that makes the first operator: TestBrowser_FirstOperator",
	"/operator/passkey":  "is for scripts, and stores nothing",
	"/sign-in":           "begins a session: what begins one is no operation",
	"/sign-in/challenge": "is for scripts, and stores nothing",
	"/sign-out":          "ends the session of the browser, whose cookie names it",
}

// scripted are the operations whose forms a script fills and shows.
var scripted = map[string]string{protocol.AddDevice.Name: "with what the browser's push service gives: TestBrowser_Push"}

// elsewhere are the forms that another test sends, by route and operation: those that give the account one more profile, which the
// others here are not ready for, those of an author, whom a cookie shows, and one that answers with a file.
var elsewhere = map[string]string{
	"/board/:id/appeal file_complaint":     "TestBrowser_Appeal",
	"/:at/appeal file_complaint":           "TestBrowser_Appeal",
	"/archive-link fetch_archive":          "TestArchiveLink",
	"/undo undo_deletion":                  "TestUndoLink",
	"/join register_profile":               "TestBrowser_JoinShop",
	"/account/claim claim_profile":         "TestBrowser_JoinAgent",
	"/oauth/authorize grant_client":        "TestBrowser_Connect",
	"/order/new make_order":                "TestBrowser_Order",
	"/order/:token cancel_order":           "TestBrowser_Order",
	"/order/:token confirm_order_mail":     "TestBrowser_Order",
	"/order/:token review_order":           "TestBrowser_Review",
	"/account update_order":                "TestBrowser_Order",
	"/account mark_refunded":               "TestBrowser_Order",
	orderTerms + " put_till":               "TestBrowser_Order",
	orderTerms + " put_stock":              "TestBrowser_Order",
	orderTerms + " put_payment_account":    "TestBrowser_Order",
	orderTerms + " delete_payment_account": "TestBrowser_Order",
}

const orderTerms = "/account/orders/settings"

// complete checks that every form which a page had and every operation that a route of forms does was sent.
func (s *formSide) complete(t *testing.T) {
	t.Helper()
	for key, page := range s.shown {
		if route, name, _ := strings.Cut(key, " "); withoutOperation[route] == "" && scripted[name] == "" && !s.sent[key] {
			t.Errorf("%s has a form without a row in formRows: %s", page, key)
		}
	}
	for _, r := range s.Web.Routes() {
		if r.Method == http.MethodPost && r.Forms == nil && withoutOperation[r.Pattern] == "" {
			t.Errorf("the route %s of forms names no operation: say which, or in withoutOperation why none", r.Pattern)
		}
		for _, op := range r.Forms {
			if !s.does[r.Pattern+" "+op.Name] && scripted[op.Name] == "" && elsewhere[r.Pattern+" "+op.Name] == "" {
				t.Errorf("%s takes a form of %s, which has no row in formRows", r.Pattern, op.Name)
			}
		}
	}
}

// typed returns what is typed in a round: in the first one what is good, later for some fields something else.
func (f formRow) typed(dice *rand.Rand, round, n int, day string) map[string]string {
	typed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.fields)) {
		values := f.fields[name]
		text := values[0]
		switch {
		case name == "do": // the buttons, each in its turn
			text = values[round%len(values)]
		case round > 0 && dice.IntN(3) == 0:
			text = values[dice.IntN(len(values))]
		}
		if (name == "body" || name == "message") && text == values[0] && f.op.Access&protocol.Proof != 0 { // texts that are alike cost more
			text = fmt.Sprintf("%d: %s", n, strings.Repeat(strconv.FormatUint(dice.Uint64(), 36)+" ", 1+n%7))
		}
		typed[name] = strings.NewReplacer("{n}", fmt.Sprintf("%011d", n), "{day}", day).Replace(text)
	}
	return typed
}

// given is what is typed where a text is something that only this side has.
func given(typed, about map[string]string) map[string]string {
	out := maps.Clone(typed)
	for name, text := range out {
		if inner, ok := strings.CutPrefix(text, "{"); ok && about[strings.TrimSuffix(inner, "}")] != "" {
			out[name] = about[strings.TrimSuffix(inner, "}")]
		}
	}
	return out
}

var changing = regexp.MustCompile(`"[a-z]+_[0-7][0-9a-hjkmnp-tv-z]{25}"|20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+\d\d:\d\d)|"next":"[^"]*"|"id":"\d+"|` +
	`"(instance|receipt)":"[^"]*"|"network","value":"[^"]*"`)

// effect is what is read after a round, without what no two nodes have in common.
func (f formRow) effect(s *formSide, about map[string]string) (all string) {
	s.T.Helper()
	for path := range strings.FieldsSeq(f.read) {
		path = filled(path, about)
		cookie := s.owner
		if strings.HasPrefix(path, "/api/operator/") {
			cookie = s.operator
		}
		headers := []string{"Cookie", cookie, "Origin", s.Base, "Sec-Fetch-Site", "same-origin"}
		if strings.HasPrefix(path, "/api/public/") {
			headers = nil
		}
		a := s.Ask("GET", path, "", headers...)
		text := changing.ReplaceAllString(fmt.Sprint(a.Code, " ", a.Body), "…")
		for _, m := range masks {
			text = m.what.ReplaceAllString(text, m.with)
		}
		all += text + "\n"
	}
	return all
}
