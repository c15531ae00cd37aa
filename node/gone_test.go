package node_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/operate"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// mark begins every text of the account that leaves. The words of the index of words are parts of texts: a mark is one word.
const mark = "zzqm"

// kept are the tables in which texts of who left may stay, with the reason, as SECURITY.md has it.
var kept = map[string]string{
	"receipt_no": "receipts for money",
	"report":     "nothing that is stored says whose the reason of a report is",
	"probe":      "addresses that the node asked lately; they are deleted within a day",
}

// A goner is an account with a person and a shop, who writes a marked text into every field, and what they are to be found by afterwards.
type goner struct {
	t       *testing.T
	h       *nodetest.House
	account protocol.KnownAccount
	cookie  string
	token   string
	ravi    string // Authorization of somebody else
	posts   []protocol.Post
}

func (g *goner) does(method, path, body string, headers ...string) nodetest.Answer {
	g.t.Helper()
	if len(headers) == 0 {
		headers = []string{"Authorization", "Bearer " + g.token}
	}
	a := g.h.Ask(method, path, body, headers...)
	require.Less(g.t, a.Code, 300, "%s %s: %s", method, path, a.Body)
	return a
}

// browser is what a page of the node sends in a browser that is signed in.
func (g *goner) browser() []string {
	return []string{"Cookie", g.cookie, "Origin", g.h.Base, "Sec-Fetch-Site", "same-origin"}
}

func newGoner(t *testing.T, change func(*node.Config)) *goner {
	h := nodetest.New(t, change)
	h.Meeting.Mail = nodetest.NoMeetingMail
	g := &goner{t: t, h: h}
	h.PutProfile([]byte(`{"handle":"asha","name":"zzqmname","kind":"person"}`))
	h.PutProfile([]byte(`{"handle":"bazaar","name":"zzqmshop","kind":"business"}`))
	g.account, _ = h.OpenAccount("zzqmaccount", protocol.RoleOwner, "zzqmail@example.org", "asha", "bazaar")
	g.cookie = h.SessionOf(g.account.ID, 0)
	g.token = nodetest.As[protocol.MadeToken](g.does("POST", "/api/owner/tokens", `{"name":"zzqmtoken","scopes":["post","profile","keys","inbox","notify",
		"archive","attention","meetings","orders","account"]}`, g.browser()...)).Secret
	g.ravi = h.Agent("ravi", nodetest.OpenPolicy)
	h.TakeBids("ravi")
	g.does("PUT", "/api/owner/meeting-settings", `{"handle":"ravi","acceptingMeetingRequests":true}`, "Authorization", g.ravi)
	return g
}

// owns writes into every field of the rooms of an owner.
func (g *goner) owns() {
	g.t.Helper()
	g.does("PUT", "/api/owner/profile", `{"handle":"asha","name":"zzqmname","kind":"person","headline":"zzqmheadline","description":"zzqmdescription",
		"tags":["zzqmtag"],"contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"responseTime":"zzqmresponse"},
		"capabilities":[{"id":"zzqmcap","name":"zzqmcapname","description":"zzqmcapdescription","tags":["zzqmcaptag"],"input":"zzqminput",
		"output":"zzqmoutput","endpoint":"https://example.org/zzqmendpoint"}],
		"needs":[{"id":"zzqmneed","description":"zzqmneeddescription","tags":["zzqmneedtag"]}]}`)
	g.does("PUT", "/api/owner/notify", `{"handle":"asha","mail":"zzqmnotify@example.org","webhook":"https://example.org/zzqmhook"}`)
	g.does("PUT", "/api/owner/payment-account", `{"handle":"asha","provider":"upi","vpa":"zzqmvpa@okbank","payeeName":"zzqmpayee",
		"legalName":"zzqmlegal","address":"zzqmaddress"}`)
	g.does("PUT", "/api/owner/attention", `{"handle":"asha","rules":"zzqmrules","floor":500,"slots":3,
		"categories":[{"name":"zzqmcategory","floor":600}]}`)
	g.does("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"location":"zzqmplace",
		"questions":["zzqmquestion?"],"policy":"zzqmpolicy"}`)
	g.does("PUT", "/api/owner/merchant", `{"handle":"bazaar","category":"zzqmshopcategory","city":"Bengaluru","website":"https://example.org/zzqmsite",
		"address":{"street":"zzqmstreet","postalCode":"560034"},"geo":{"latitude":12.9,"longitude":77.6},
		"items":[{"sku":"zzqmsku","name":"zzqmitem","description":"zzqmitemtext","price":{"currency":"INR","amount":"10"},
			"unit":"zzqmunit","tags":["zzqmitemtag"]}]}`)
	g.does("POST", "/api/owner/order-receipts", fmt.Sprintf(`{"handle":"bazaar","order":"zzqmorder","buyer":"zzqmbuyer",
		"total":{"currency":"INR","amount":"10"},"paidAt":%q}`, nodetest.MachineZ(time.Now().Add(-time.Hour))))
	g.does("POST", "/api/owner/keys/kept", `{"handle":"asha"}`)
	for n := range 60 {
		g.does("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":"zzqmtitle%d","body":"zzqmbody","tags":["zzqmposttag"]}`, n),
			"Authorization", "Bearer "+g.token, "Act-As", "asha").Into(g.post())
	}
	g.does("PUT", "/api/public/board/"+g.posts[0].ID, `{"kind":"offer","title":"zzqmtitlenew","body":"zzqmbodynew"}`,
		"Authorization", "Bearer "+g.token, "Act-As", "asha")
	g.does("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":"zzqmreply","body":"zzqmreplybody","inReplyTo":%q}`, g.h.Post("Yarn").ID),
		"Authorization", "Bearer "+g.token, "Act-As", "asha").Into(g.post())
}

func (g *goner) post() *protocol.Post {
	g.posts = append(g.posts, protocol.Post{})
	return &g.posts[len(g.posts)-1]
}

// writes writes to others, and answers them.
func (g *goner) writes() {
	g.t.Helper()
	asha := []string{"Authorization", "Bearer " + g.token, "Act-As", "asha"}
	var thread, here protocol.ContactReceipt
	g.does("POST", "/api/public/agents/ravi/contact", `{"message":"zzqmmessage","callbackUrl":"https://example.org/zzqmcallback"}`, asha...).Into(&thread)
	g.does("POST", "/api/owner/threads/"+thread.ThreadID+"/messages", `{"message":"An answer of ravi"}`, "Authorization", g.ravi)
	g.does("POST", "/api/public/threads/"+thread.ThreadID+"/messages", `{"message":"zzqmsecond"}`, asha...)
	g.does("POST", "/api/public/agents/ravi/attention/bids", `{"amount":500,"message":"zzqmbid","url":"https://example.org/zzqmbidurl"}`, asha...)
	g.does("POST", "/api/public/agents/ravi/meetings", fmt.Sprintf(`{"requester":"zzqmrequester","email":"zzqmrequest@example.org",
		"purpose":"zzqmpurpose","durationMin":30,"startsAt":%q}`,
		time.Now().UTC().Add(72*time.Hour).Truncate(time.Hour).Format(time.RFC3339)), asha...)
	g.does("POST", "/api/public/board/"+g.h.Post("Wool").ID+"/report", `{"reason":"zzqmreason"}`, asha...)
	g.does("POST", "/api/public/agents/asha/contact", `{"message":"A question"}`, "Authorization", g.ravi).Into(&here)
	g.does("POST", "/api/owner/threads/"+here.ThreadID+"/messages", `{"message":"zzqmanswer"}`)
	g.does("POST", "/api/owner/threads/"+here.ThreadID+"/block", `{"note":"zzqmnote"}`)
}

// archived returns the text of an archive.
func (g *goner) archived(handle string, headers ...string) string {
	g.t.Helper()
	zip := must.Get(gzip.NewReader(bytes.NewReader(g.does("POST", "/api/owner/export", fmt.Sprintf(`{"handle":%q}`, handle), headers...).Body.Bytes())))(g.t)
	var all bytes.Buffer
	for packed := tar.NewReader(zip); ; {
		if _, err := packed.Next(); errors.Is(err, io.EOF) {
			return all.String()
		} else if err != nil {
			g.t.Fatal(err)
		}
		_, err := io.Copy(&all, packed)
		require.NoError(g.t, err)
	}
}

// marks are the words with a mark in a text.
func marks(text string) (all []string) {
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		if at := strings.Index(word, mark); at >= 0 && !slices.Contains(all, word[at:]) {
			all = append(all, word[at:])
		}
	}
	slices.Sort(all)
	return all
}

// rows returns, by table, the marks in all rows of the database.
func (g *goner) rows() map[string][]string {
	g.t.Helper()
	db, tables := g.open()
	found := map[string][]string{}
	for _, table := range tables {
		rows := must.Get(db.Query(`SELECT * FROM ` + table))(g.t)
		columns := must.Get(rows.Columns())(g.t)
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			require.NoError(g.t, rows.Scan(values...))
			for _, v := range values {
				text := fmt.Sprint(*v.(*any))
				if raw, ok := (*v.(*any)).([]byte); ok {
					text = string(raw)
				}
				found[table] = append(found[table], marks(text)...)
			}
		}
		require.NoError(g.t, rows.Err())
		if slices.Sort(found[table]); len(found[table]) == 0 {
			delete(found, table)
		}
		found[table] = slices.Compact(found[table])
	}
	for table, words := range found {
		if len(words) == 0 {
			delete(found, table)
		}
	}
	return found
}

// open opens the database of the node beside it.
func (g *goner) open() (*sql.DB, []string) {
	g.t.Helper()
	driver, source, list := "sqlite", g.h.Config.SQLite()+"?_pragma=busy_timeout(5000)",
		`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\_word' ESCAPE '\'`
	if g.h.Config.Database != "" {
		driver, source, list = "pgx", g.h.Config.Database, `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
	}
	db := must.Get(sql.Open(driver, source))(g.t)
	g.t.Cleanup(func() { db.Close() })
	names := must.Get(db.Query(list))(g.t)
	defer names.Close()
	var tables []string
	for names.Next() {
		var name string
		require.NoError(g.t, names.Scan(&name))
		tables = append(tables, name)
	}
	return db, tables
}

// leaving are the jobs that delete.
var leaving = []storage.JobKind{storage.LeaveJob, storage.ConcealJob, storage.EraseProfileJob, storage.DropJob, storage.DropItemsJob, storage.DropFollowersJob}

// later does what is due after a time.
func (g *goner) later(after time.Duration) {
	g.t.Helper()
	ctx := g.t.Context()
	db := must.Get(storage.Open(ctx, storage.Config{Path: g.h.Config.SQLite(), URL: g.h.Config.Database,
		Now: func() time.Time { return time.Now().Add(after) }}))(g.t)
	defer func() { require.NoError(g.t, db.Close()) }()
	before := g.h.Worker.DB
	g.h.Worker.DB = db
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.h.Worker.Run(ctx) }()
	require.Eventually(g.t, func() bool {
		var n int
		require.NoError(g.t, db.Read(g.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
			for _, j := range jobs.Items { // one that runs is due when its lease ends
				if slices.Contains(leaving, j.Kind) && j.RunAt.Before(tx.Now.Add(30*time.Minute)) {
					n++
				}
			}
			return err
		}))
		return n == 0
	}, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(g.t, <-done)
	_, err := operate.Upkeep{DB: db}.Prune(g.t.Context(), storage.Job{})
	require.NoError(g.t, err)
	g.h.Worker.DB = before
	require.NoError(g.t, g.h.DB.Scrub(g.t.Context()))
}

// TestGone: an account writes a marked text into every field of every room. Its archives have all of them. Seven days after it was closed no table
// has one, nor on SQLite the file, its log and its indexes, but what is kept.
func TestGone(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		g := newGoner(t, change)
		g.owns()
		g.writes()
		archive := marks(g.archived("asha") + " " + g.archived("bazaar"))
		stored := g.rows()
		for table, words := range stored {
			for _, word := range words {
				// Of the account, a report, and the number of an order, which is in the signed receipt.
				elsewhere := []string{"zzqmaccount", "zzqmail", "zzqmtoken", "zzqmreason", "zzqmorder"}
				if !strings.HasSuffix(table, "_word") && table != "profile_rank" && !slices.Contains(archive, word) && !slices.Contains(elsewhere, word) {
					t.Errorf("no archive has %s of %s", word, table)
				}
			}
		}
		require.Greater(t, len(archive), 50)
		d := nodetest.As[protocol.Departure](g.does("DELETE", "/api/owner/account", "", g.browser()...))
		require.Equal(t, protocol.LeaveHidden, d.State, "%+v", d)
		require.Equal(t, 401, g.h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+g.token).Code)
		g.later(0)
		for _, path := range []string{"/api/public/agents/asha", "/api/public/merchants/bazaar", "/api/public/agents/asha/attention",
			"/api/public/agents/asha/meetings"} {
			require.Equal(t, 404, g.h.Ask("GET", path, "").Code, path)
		}
		for _, path := range []string{"/api/public/board?limit=100", "/api/public/feed?limit=100", "/api/public/agents?limit=100",
			"/api/public/items?q=zzqmitem", "/api/public/attention"} {
			require.Empty(t, marks(g.h.Ask("GET", path, "").Is(200).Body.String()), path)
		}
		g.later(protocol.UndoFor + time.Hour)
		if engine := g.h.DB.Engine(); engine == "postgres" {
			db, _ := g.open()
			rows := must.Get(db.Query(`SELECT 'VACUUM FULL ' || quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'`))(t)
			var statements []string // not of the catalogs that sign-ins read
			for rows.Next() {
				var s string
				require.NoError(t, rows.Scan(&s))
				statements = append(statements, s)
			}
			require.NoError(t, rows.Close())
			for _, s := range statements {
				must.Get(db.Exec(s))(t)
			}
		}
		var stays []string
		for table, words := range g.rows() {
			if stays = append(stays, words...); kept[table] == "" {
				t.Errorf("%s has %v", table, words)
			}
		}
		if g.h.Config.Database == "" && !t.Failed() {
			files := must.Get(filepath.Glob(g.h.Config.SQLite() + "*"))(t)
			for _, f := range files {
				left := slices.DeleteFunc(marks(string(must.Get(os.ReadFile(f))(t))), func(word string) bool {
					return slices.ContainsFunc(stays, func(kept string) bool { return strings.HasPrefix(word, kept) })
				})
				require.Empty(t, left, f)
			}
		}
	})
}

// TestGone_Elsewhere: a node that follows hides what a profile has when it is deleted, shows it again when that is undone, and seven days later has no
// text of it any more.
func TestGone_Elsewhere(t *testing.T) {
	t.Parallel()
	home, away := nodetest.Start(t), nodetest.Start(t)
	require.NoError(t, away.Admin().Follow(t.Context(), home.Base))
	home.PutProfile([]byte(`{"handle":"ada","name":"zzqmname","kind":"person","headline":"zzqmheadline"}`))
	token := []string{"Authorization", "Bearer " + home.OwnerToken("ada")}
	home.Ask("POST", "/api/public/board", `{"kind":"offer","title":"zzqmtitle","body":"zzqmbody"}`, token...).Is(201)
	shown := func(text bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			found := marks(away.Ask("GET", "/api/public/board", "").Body.String() + away.Ask("GET", "/api/public/agents", "").Body.String())
			return slices.Contains(found, "zzqmbody") == text && slices.Contains(found, "zzqmheadline") == text
		}, time.Minute, 50*time.Millisecond)
	}
	shown(true)
	home.Ask("DELETE", "/api/owner/profile", "", token...).Is(200)
	shown(false)
	home.Ask("POST", "/api/owner/profile/restore", "", token...).Is(204)
	shown(true)
	home.Ask("DELETE", "/api/owner/profile", "", token...).Is(200)
	shown(false)
	require.NoError(t, home.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		of, err := tx.Leavings().BySubject(ctx, "ada")
		if err != nil {
			return err
		}
		of.HiddenAt = of.HiddenAt.Add(-protocol.UndoFor)
		return tx.Leavings().Put(ctx, of, tx.Now)
	}))
	require.Eventually(t, func() bool {
		return home.Ask("GET", "/ap/agents/ada", "", "Accept", "application/activity+json").Code == 410
	}, time.Minute, 50*time.Millisecond)
	g := &goner{t: t, h: away}
	left := func() map[string][]string {
		rows := g.rows()
		// What was taken of the log stays until it is read again, words until they are scrubbed.
		delete(rows, "log_taken")
		maps.DeleteFunc(rows, func(table string, _ []string) bool { return strings.HasSuffix(table, "_word_data") })
		return rows
	}
	require.Eventually(t, func() bool { return len(left()) == 0 }, time.Minute, 200*time.Millisecond)
	require.NoError(t, away.DB.Scrub(t.Context()))
	rows := g.rows()
	delete(rows, "log_taken")
	require.Empty(t, rows)
}
