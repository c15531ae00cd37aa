package meeting_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/node/out/mail"
	"stoa/node/room/meeting"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// start is a Monday, 10:00 in India.
var start = time.Date(2026, 11, 2, 4, 30, 0, 0, time.UTC)

// A world is a node with meetings and a clock, and the mails that it sent.
type world struct {
	*meeting.Meeting
	t    *testing.T
	db   *storage.DB
	now  *atomic.Int64 // Unix milliseconds
	mu   sync.Mutex
	sent []meeting.Letter
	raw  [][]byte // of those in sent that were composed before
	fail error    // what the mail server answers

	told []protocol.Notice
	dies bool // each job dies once, after its effect and before its commit
}

// sender composes letters, and knows the addresses to which answers come.
var sender = &mail.Sender{From: "calendar@node.example", Name: "Node", Host: "node.example", ReturnKey: []byte("key")}

func (w *world) Answers(id string) string { return sender.Return().Answers(id) }

func (w *world) Compose(l meeting.Letter) ([]byte, error) {
	x := mail.Message{ID: l.ID, To: l.To, Subject: l.Subject, Text: l.Text, HTML: l.HTML, Name: l.From, Date: l.Date, Bounce: l.Bounce}
	if l.Method != "" {
		x.Calendar = &mail.Calendar{Method: l.Method, Object: l.Calendar}
	}
	return sender.Compose(x)
}

func (w *world) Send(_ context.Context, l meeting.Letter, raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail == nil {
		w.sent, w.raw = append(w.sent, l), append(w.raw, raw)
	}
	return w.fail
}

func inWords(language string) hall.Words { return cmp.Or(words.All().Find(language), words.English()) }

func open(t *testing.T, c storage.Config, now *atomic.Int64, mails bool) *world {
	c.Now = func() time.Time { return time.UnixMilli(now.Load()).UTC() }
	w := &world{t: t, db: storagetest.OpenConfig(t, c), now: now}
	seal := must.Get(key.NewSealer(make([]byte, 32)))(t)
	w.Meeting = &meeting.Meeting{Base: "https://node.example", DB: w.db, Words: inWords, LinkKey: []byte("key"),
		Mail: func() meeting.Mailer { return nil }, Seal: seal}
	if mails {
		w.Meeting.Mail = func() meeting.Mailer { return w }
	}
	return w
}

// each runs a test on both engines with a person, asha, who takes meetings at all hours.
func each(t *testing.T, mails bool, fn func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(opened(t, c, mails)) })
}

// anyEngine is for calendars and mail, whose statements the walks of requests run on both engines.
func anyEngine(t *testing.T, mails bool, fn func(w *world)) {
	t.Parallel()
	storagetest.Any(t, func(t *testing.T, c storage.Config) { fn(opened(t, c, mails)) })
}

// opened is a world with asha, who can always be met.
func opened(t *testing.T, c storage.Config, mails bool) *world {
	now := &atomic.Int64{}
	now.Store(start.UnixMilli())
	w := open(t, c, now, mails)
	w.person("asha")
	w.settings("asha", always())
	return w
}

// always are rules by which every time is open.
func always() protocol.MeetingRules {
	r := protocol.MeetingRules{Durations: []int{30}, MaxPerDay: 100, MaxWaiting: 100}
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		r.UsualHours = append(r.UsualHours, protocol.MeetingHours{Day: day, MeetingWindow: protocol.MeetingWindow{From: "00:00", To: "24:00"}})
	}
	return r
}

func (w *world) pass(d time.Duration) { w.now.Add(d.Milliseconds()) }
func (w *world) clock() time.Time     { return time.UnixMilli(w.now.Load()).UTC() }

func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) error {
	return w.db.Write(context.Background(), fn)
}

func (w *world) person(handle string) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: "Asha Rao", Kind: protocol.Person}}))
	}))
}

func owner(handle string) protocol.Caller {
	return protocol.Caller{Standing: protocol.Session, Handle: handle, Handles: []string{handle}, Network: "owner"}
}

func stranger(n int) protocol.Caller {
	return protocol.Caller{Standing: protocol.Proof, Network: fmt.Sprint("network ", n)}
}

func (w *world) settings(handle string, r protocol.MeetingRules) {
	w.t.Helper()
	must.Get(does(w, w.PutSettings, owner(handle), protocol.MeetingDraft{Owned: protocol.Owned{Handle: handle}, Accepting: true, MeetingRules: r}))(w.t)
}

// asks asks asha for half an hour.
func (w *world) asks(c protocol.Caller, mail string, at time.Time) (got protocol.MeetingReceipt, err error) {
	return does(w, w.Ask, c, protocol.NewMeeting{
		Handle: "asha", Requester: "Ravi", Email: mail, Purpose: "Yarn.", DurationMin: 30, StartsAt: at.Format(time.RFC3339),
	})
}

// asked is asks by somebody new, submitted.
func (w *world) asked(n int, at time.Time) protocol.MeetingReceipt {
	w.t.Helper()
	return must.Get(w.asks(stranger(n), fmt.Sprintf("ravi%d@example.org", n), at))(w.t)
}

func (w *world) get(r protocol.MeetingReceipt) (got protocol.MeetingRequest) {
	w.t.Helper()
	require.NoError(w.t, w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		got, err = w.Get(ctx, tx, protocol.Caller{}, protocol.MeetingInput{ID: r.Request.ID, StatusToken: r.StatusToken})
		return err
	}))
	return got
}

// does runs one operation.
func does[In, Out any](w *world, op func(context.Context, *storage.Tx, protocol.Caller, In) (Out, error), c protocol.Caller, in In) (out Out, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
		out, err = op(ctx, tx, c, in)
		return err
	})
	return out, err
}

// notice is the job of a notice.
func (w *world) notice(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	var n protocol.Notice
	err := json.Unmarshal(j.Args, &n)
	return func(context.Context, *storage.Tx) error { w.told = append(w.told, n); return nil }, err
}

// runJobs runs what is due, until nothing is.
func (w *world) runJobs() {
	w.t.Helper()
	handlers := w.Jobs()
	handlers[storage.NoticeJob] = w.notice
	ctx := context.Background()
	for range 1000 {
		jobs, _, err := w.db.ClaimJobs(ctx, "test", 10, time.Minute)
		require.NoError(w.t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			var after func(context.Context, *storage.Tx) error
			if handle := handlers[j.Kind]; handle != nil {
				after = must.Get(handle(ctx, j))(w.t)
				if w.dies {
					after = must.Get(handle(ctx, j))(w.t)
				}
			}
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				if after != nil {
					if err := after(ctx, tx); err != nil {
						return err
					}
				}
				return tx.Jobs().Finish(ctx, j.ID)
			}))
		}
	}
	w.t.Fatal("the jobs do not end")
}

func ref(r protocol.MeetingReceipt) protocol.OwnMeetingRef {
	return protocol.OwnMeetingRef{ID: r.Request.ID}
}

func decision(r protocol.MeetingReceipt) protocol.MeetingDecision {
	return protocol.MeetingDecision{OwnMeetingRef: ref(r)}
}

func input(r protocol.MeetingReceipt) protocol.MeetingInput {
	return protocol.MeetingInput{ID: r.Request.ID, StatusToken: r.StatusToken}
}
