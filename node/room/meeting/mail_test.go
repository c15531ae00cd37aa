package meeting_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/meeting"
	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/protocol/must"
	"stoa/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// confirmed is a request whose mailbox is confirmed.
func (w *world) confirmed(n int, in protocol.NewMeeting) protocol.MeetingReceipt {
	w.t.Helper()
	in.Handle, in.Email, in.DurationMin = "asha", fmt.Sprintf("ravi%d@example.org", n), 30
	if in.Requester == "" {
		in.Requester, in.Purpose = "Ravi", "Yarn."
	}
	if in.StartsAt == "" {
		in.StartsAt = start.Add(time.Duration(48+n) * time.Hour).Format(time.RFC3339)
	}
	r := must.Get(does(w, w.Ask, stranger(n), in))(w.t)
	w.runJobs()
	for _, l := range slices.Backward(w.sent) {
		if l.To == in.Email {
			require.NoError(w.t, w.use(linkIn(l.Text), protocol.MeetingLinkConfirm))
			break
		}
	}
	return r
}

// invited is a request that is approved and whose invitation was sent. It returns the address of answers.
func (w *world) invited(n int) (r protocol.MeetingReceipt, at string) {
	w.t.Helper()
	r = w.confirmed(n, protocol.NewMeeting{TimeZone: "Europe/Berlin"})
	require.NoError(w.t, moves["approve"](w, r))
	w.runJobs()
	return r, strings.TrimPrefix(r.Request.ID, "mtg_")
}

func (w *world) owned(r protocol.MeetingReceipt) protocol.OwnMeeting {
	w.t.Helper()
	return must.Get(does(w, w.GetOwn, owner("asha"), ref(r)))(w.t)
}

// letters returns what was sent, each letter once: its id, and METHOD and SEQUENCE of its calendar. A letter that
// was sent again has the same bytes.
func (w *world) letters() (all []string) {
	w.t.Helper()
	was := map[string][]byte{}
	for i, l := range w.sent {
		if l.Method == "" {
			continue
		}
		if before, again := was[l.ID]; again {
			require.Equal(w.t, string(before), string(w.raw[i]), "%s has other bytes", l.ID)
			continue
		}
		was[l.ID] = w.raw[i]
		require.Contains(w.t, string(w.raw[i]), "Message-ID: <"+l.ID+"@node.example>")
		all = append(all, l.Method+regexp.MustCompile(`SEQUENCE:(\d+)`).FindStringSubmatch(string(l.Calendar))[1])
	}
	return all
}

// TestInvite: an approval sends one REQUEST, a move another with a higher SEQUENCE, a cancellation CANCEL;
// each attempt has the same bytes, also when its process died before it could say so; nothing is kept after.
func TestInvite(t *testing.T) {
	each(t, true, func(w *world) {
		for n, killed := range []bool{false, true} {
			w.sent, w.raw = nil, nil
			r := w.confirmed(n, protocol.NewMeeting{})
			w.dies = killed
			w.fail = protocol.Errorf(protocol.Overloaded, "greylisted")
			require.NoError(w.t, moves["approve"](w, r))
			w.runJobs()
			require.Empty(w.t, w.letters())
			w.fail = nil
			w.pass(time.Minute)
			w.runJobs()
			require.Equal(w.t, []string{"REQUEST0"}, w.letters())
			require.Equal(w.t, protocol.MeetingMailSent, w.owned(r).Mail)
			require.NoError(w.t, moves["move"](w, r))
			require.NoError(w.t, moves["move"](w, r), "to the same time")
			w.runJobs()
			require.NoError(w.t, moves["cancel own"](w, r))
			w.runJobs()
			require.Equal(w.t, []string{"REQUEST0", "REQUEST1", "CANCEL2"}, w.letters())
			w.dies = false
		}
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			for _, l := range w.sent {
				require.ErrorIs(w.t, must.Err(tx.Meetings().Letter(ctx, l.ID)), storage.ErrNotFound)
			}
			return nil
		}))

		// One that is overtaken is not sent, and not kept.
		w.sent, w.raw = nil, nil
		r := w.confirmed(7, protocol.NewMeeting{})
		w.fail = protocol.Errorf(protocol.Overloaded, "greylisted")
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		require.NoError(w.t, moves["cancel"](w, r))
		w.fail = nil
		w.pass(time.Minute)
		w.runJobs()
		require.Equal(w.t, []string{"CANCEL1"}, w.letters())
		require.NoError(w.t, w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(w.t, must.Err(tx.Meetings().Letter(ctx, r.Request.ID+".3")), storage.ErrNotFound)
			return nil
		}))
	})
}

// TestInvite_Sealed: what is kept of an invitation cannot be read in the database, and ends.
func TestInvite_Sealed(t *testing.T) {
	each(t, true, func(w *world) {
		r := w.confirmed(1, protocol.NewMeeting{})
		w.fail = protocol.Errorf(protocol.Overloaded, "greylisted")
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		kept := func() (sealed []byte, err error) {
			err = w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
				sealed, err = tx.Meetings().Letter(ctx, r.Request.ID+".3")
				return err
			})
			return sealed, err
		}
		sealed := must.Get(kept())(w.t)
		require.Greater(w.t, len(sealed), 1000)
		require.NotContains(w.t, string(sealed), "ticket=")
		require.NotContains(w.t, string(sealed), "ravi1@")
		w.pass(72*time.Hour + time.Millisecond)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			for n := 1; n > 0; {
				var err error
				if n, err = tx.PruneExpired(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
		require.ErrorIs(w.t, must.Err(kept()), storage.ErrNotFound)
	})
}

var varies = []*regexp.Regexp{regexp.MustCompile(`mtg_[0-9a-z]{26}`), regexp.MustCompile(`\+a-[0-9a-z]{26}-[0-9a-f]{16}`),
	regexp.MustCompile(`stoa_read_[A-Za-z0-9_-]+`), regexp.MustCompile(`stoa-[a-z2-7]{20}`)}

// tree returns a mail decoded, part by part, without what is different at each run.
func tree(t *testing.T, raw []byte) string {
	t.Helper()
	var b strings.Builder
	m := must.Get(netmail.ReadMessage(bytes.NewReader(raw)))(t)
	for _, name := range []string{"From", "To", "Subject", "Date", "Auto-Submitted"} {
		text := must.Get(new(mime.WordDecoder).DecodeHeader(m.Header.Get(name)))(t)
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	calendar := ""
	var walk func(indent, kind, encoding, disposition string, body io.Reader)
	walk = func(indent, kind, encoding, disposition string, body io.Reader) {
		media, params, err := mime.ParseMediaType(kind)
		require.NoError(t, err)
		within := params["boundary"]
		delete(params, "boundary")
		fmt.Fprintf(&b, "%s= %s %s\n", indent, mime.FormatMediaType(media, params), disposition)
		if within != "" {
			for parts := multipart.NewReader(body, within); ; {
				p, err := parts.NextRawPart()
				if err == io.EOF {
					return
				}
				require.NoError(t, err)
				walk(indent+"=", p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p.Header.Get("Content-Disposition"), p)
			}
		}
		switch encoding {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		text := must.Get(io.ReadAll(body))(t)
		part := strings.ReplaceAll(string(text), "\r\n", "\n")
		switch media {
		case "text/calendar":
			part = strings.ReplaceAll(part, "\n ", "") // long lines
			calendar = string(text)
		case "application/ics":
			require.Equal(t, calendar, string(text))
			part = "(the same)\n"
		}
		b.WriteString(part)
	}
	walk("", m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), "", m.Body)
	out := b.String()
	for _, v := range varies {
		out = v.ReplaceAllString(out, "…")
	}
	return out
}

// TestInvite_Golden: invitations with names and purposes of any script, in both languages, with the local
// times of both sides, the requester's first.
func TestInvite_Golden(t *testing.T) {
	t.Parallel()
	marks := "Z" + strings.Repeat("\u0301", 100) + "algo"
	for name, in := range map[string]protocol.NewMeeting{
		"plain":  {Requester: "Ravi Iyer", Purpose: "Prices for 40 kg of yarn.\nSee https://evil.example/pay, please.", TimeZone: "Europe/Berlin"},
		"quotes": {Requester: `Iyer, "Ravi" <x@y.example>; \n`, Purpose: `Comma, semicolon; "quote", back\slash`, TimeZone: "America/New_York"},
		"emoji":  {Requester: "Ravi 👨‍👩‍👧 🇮🇳", Purpose: "🧶×40", Language: "hi"},
		"rtl":    {Requester: "דנה כהן", Purpose: "שלום, خيط", TimeZone: "Asia/Jerusalem", Language: "hi"},
		"marks":  {Requester: protocol.CleanText(marks), Purpose: protocol.CleanText(marks)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one(t, func(w *world) {
				rules := always()
				rules.Location = "https://meet.example/{slug}"
				w.settings("asha", rules)
				in.StartsAt = start.Add(49 * time.Hour).Format(time.RFC3339)
				require.NoError(t, moves["approve"](w, w.confirmed(1, in)))
				w.runJobs()
				got := tree(t, w.raw[len(w.raw)-1])
				file := "testdata/" + name + ".txt"
				if *update {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err, "go test ./node/room/meeting -run Golden -update writes it")
				require.Equal(t, strings.Split(string(want), "\n"), strings.Split(got, "\n"))
			})
		})
	}
}

// TestSubjects: a mail of each kind has a subject in both languages, with the name, and not a verb that
// was not filled in.
func TestSubjects(t *testing.T) {
	t.Parallel()
	one(t, func(w *world) {
		seen := map[string]bool{}
		for n, language := range []string{"", "en", "hi"} {
			for i, way := range [][]string{{"approve", "move", "cancel own"}, {"decline"}, {"propose"}} {
				w.confirmed(n*10+i, protocol.NewMeeting{Language: language})
				at := start.Add(time.Duration(300+n*10+i) * time.Hour).Format(time.RFC3339)
				r := w.confirmed(100+n*10+i, protocol.NewMeeting{Language: language, StartsAt: at})
				for _, step := range way {
					require.NoError(t, moves[step](w, r))
					w.runJobs()
				}
			}
			for _, l := range w.sent {
				require.NotContains(t, l.Subject, "%!")
				require.True(t, strings.Contains(l.Subject, "Asha Rao") || strings.Contains(l.Subject, "node.example"), l.Subject)
				require.Equal(t, language == "hi", strings.ContainsAny(l.Subject, "कखमरसनप"), l.Subject)
				seen[l.Subject] = true
			}
			w.sent, w.raw = nil, nil
		}
		require.GreaterOrEqual(t, len(seen), 12)

		// Those on which nobody decided have expired: nobody waits in vain.
		w.pass(200 * time.Hour)
		w.runJobs()
		expired := map[string]int{}
		for _, l := range w.sent {
			if strings.Contains(l.Text, "Nobody decided in time") || strings.Contains(l.Text, "समय पर किसी ने फ़ैसला नहीं किया") {
				require.Contains(t, l.Text, "https://node.example/@asha/meet\n")
				expired[l.Subject]++
			}
		}
		require.Equal(t, map[string]int{"Your meeting request to Asha Rao has expired": 8, "Asha Rao से आपकी मुलाक़ात के अनुरोध का समय समाप्त हो गया": 4}, expired)
	})
}

// reply is the answer of a calendar, in the form of a program.
func (w *world) reply(form string, r protocol.MeetingReceipt, change func(a *reply)) []byte {
	w.t.Helper()
	a := reply{From: "ravi1@example.org", Attendee: "ravi1@example.org", Method: "REPLY", Answer: "DECLINED", UID: r.Request.ID + "@node.example",
		Stamp: w.clock().Add(time.Minute).Format("20060102T150405Z"), Sequence: fmt.Sprint(w.get(r).Sequence)}
	change(&a)
	object := "BEGIN:VCALENDAR\r\nPRODID:x\r\nVERSION:2.0\r\nMETHOD:" + a.Method + "\r\nBEGIN:VEVENT\r\nUID:" + a.UID + "\r\nDTSTAMP:" + a.Stamp +
		"\r\nSEQUENCE:" + a.Sequence + "\r\nATTENDEE;PARTSTAT=" + a.Answer + ":mailto:" + a.Attendee + "\r\n" + a.More + "END:VEVENT\r\nEND:VCALENDAR\r\n"
	if a.Stamp == "" {
		object = strings.Replace(object, "DTSTAMP:\r\n", "", 1)
	}
	if a.Sequence == "" {
		object = strings.Replace(object, "SEQUENCE:\r\n", "", 1)
	}
	head := "From: Ravi <" + a.From + ">\r\nTo: x\r\nSubject: Re\r\nMIME-Version: 1.0\r\n"
	calendar := "Content-Type: text/calendar; charset=UTF-8; method=" + a.Method + "\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
		base64.StdEncoding.EncodeToString([]byte(object)) + "\r\n"
	text := "Content-Type: text/plain\r\n\r\nRavi has declined.\r\n"
	if form == "gmail" {
		return []byte(head + "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n" + text +
			"--b\r\n" + calendar + "--b--\r\n--a\r\n" + strings.Replace(calendar, "text/calendar", "application/ics; name=invite.ics", 1) + "--a--\r\n")
	}
	return []byte(head + "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n" + text +
		"--a\r\nContent-Type: text/html\r\n\r\n<p>x\r\n--a\r\n" + calendar + "--a--\r\n")
}

type reply struct{ From, Attendee, Method, Answer, UID, Stamp, Sequence, More string }

// comes hands a mail to the room as the node does.
func (w *world) comes(at string, raw []byte, signers ...string) {
	w.t.Helper()
	got := must.Get(ics.ReadReply(raw))(w.t)
	require.NoError(w.t, w.Answered(context.Background(), at, got, func() []string { return signers }))
}

// TestAnswer_Declined: DECLINED in the forms of Gmail and Outlook cancels the meeting and frees its time,
// once, however often the mail comes; the person is told.
func TestAnswer_Declined(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"gmail", "outlook"} {
		t.Run(form, func(t *testing.T) {
			each(t, true, func(w *world) {
				w.notices("asha")
				r, at := w.invited(1)
				w.runJobs()
				told := len(w.told)
				raw := w.reply(form, r, func(*reply) {})
				for range 3 {
					w.comes(at, raw)
				}
				got := w.get(r)
				require.Equal(w.t, protocol.MeetingCancelled, got.State)
				require.Len(w.t, got.History, 4)
				require.Contains(w.t, got.History[3].Note, "declined in answer")
				require.Equal(w.t, protocol.AnswerDeclined, w.owned(r).Attendance.Answer)
				w.runJobs()
				require.Len(w.t, w.told, told+1)
				require.Equal(w.t, []string{"REQUEST0", "CANCEL1"}, w.letters())
				other := w.asked(2, got.StartsAt)
				w.runJobs()
				require.NoError(w.t, w.use(linkIn(w.sent[len(w.sent)-1].Text), protocol.MeetingLinkConfirm))
				require.NoError(w.t, moves["approve"](w, other), "the time is free")
			})
		})
	}
}

// TestAnswer_Changes: which answers change a meeting, which are shown as not verified, and which are nothing.
func TestAnswer_Changes(t *testing.T) {
	each(t, true, func(w *world) {
		r, at := w.invited(1)
		_, other := w.invited(2)
		same := func(*reply) {}
		unverified := func(want bool) {
			w.t.Helper()
			require.Equal(w.t, protocol.MeetingApproved, w.get(r).State)
			got := w.owned(r).Attendance
			require.Equal(w.t, want, got != nil)
			if want {
				require.False(w.t, got.Verified)
			}
		}
		// Nothing: to another address without a signature, to another meeting's address, of another meeting, from others.
		for name, tt := range map[string]struct {
			at      string
			change  func(*reply)
			signers []string
		}{
			"no secret, no signature":      {"", same, nil},
			"no secret, another's":         {"", same, []string{"evil.example"}},
			"no secret, from another":      {"", func(a *reply) { a.From = "evil@example.org" }, []string{"example.org"}},
			"the secret of another":        {other, same, []string{"example.org"}},
			"another node's meeting":       {at, func(a *reply) { a.UID = r.Request.ID + "@evil.example" }, nil},
			"no such meeting":              {"", func(a *reply) { a.UID = "mtg_01k9y3v6k8e5w9q2x4z7c1m0ad@node.example" }, nil},
			"for another attendee":         {at, func(a *reply) { a.Attendee = "ravi2@example.org" }, nil},
			"an earlier time":              {at, func(a *reply) { a.Sequence = "-1" }, nil},
			"a later time than there is":   {at, func(a *reply) { a.Sequence = "1" }, nil},
			"a clock of another year":      {at, func(a *reply) { a.Stamp = "20300101T000000Z" }, nil},
			"an answer that means nothing": {at, func(a *reply) { a.Answer = "DELEGATED" }, nil},
		} {
			w.comes(tt.at, w.reply("gmail", r, func(a *reply) {
				tt.change(a)
				if a.Sequence == "-1" {
					a.Sequence, a.Stamp = "", "20200101T000000Z"
					a.Answer = "NEEDS-ACTION"
				}
			}), tt.signers...)
			require.Nil(w.t, w.owned(r).Attendance, name)
			require.Equal(w.t, protocol.MeetingApproved, w.get(r).State, name)
		}
		// An answer from another mailbox is shown, and changes nothing.
		w.comes(at, w.reply("gmail", r, func(a *reply) { a.From = "evil@evil.example" }), "evil.example")
		unverified(true)
		// The mailbox itself.
		w.comes(at, w.reply("gmail", r, func(a *reply) { a.Answer, a.From, a.Attendee = "TENTATIVE", "RAVI1@Example.org", "Ravi1@EXAMPLE.org" }))
		require.Equal(w.t, protocol.AnswerTentative, w.owned(r).Attendance.Answer)
		w.comes(at, w.reply("gmail", r, func(a *reply) { a.From = "evil@evil.example" }))
		require.True(w.t, w.owned(r).Attendance.Verified, "what is not verified does not hide what is")
		w.comes(at, w.reply("gmail", r, func(a *reply) {
			a.Answer, a.Stamp = "ACCEPTED", w.clock().Add(-time.Minute).Format("20060102T150405Z")
		}))
		require.Equal(w.t, protocol.AnswerTentative, w.owned(r).Attendance.Answer, "an older answer")
		w.pass(time.Minute)
		w.comes(at, w.reply("outlook", r, func(a *reply) { a.Answer, a.Sequence = "ACCEPTED", "" }))
		require.Equal(w.t, protocol.AnswerAccepted, w.owned(r).Attendance.Answer)
		// A move asks again; an answer to the former time is none.
		require.NoError(w.t, moves["move"](w, r))
		require.Nil(w.t, w.owned(r).Attendance)
		w.comes(at, w.reply("gmail", r, func(a *reply) { a.Sequence = "0" }))
		w.comes(at, w.reply("gmail", r, func(a *reply) { a.Sequence, a.Stamp = "", w.clock().Add(-time.Hour).Format("20060102T150405Z") }))
		require.Nil(w.t, w.owned(r).Attendance)
		// To the node's own address, with a signature.
		w.comes("", w.reply("gmail", r, same), "example.org")
		require.Equal(w.t, protocol.MeetingCancelled, w.get(r).State)
		// From another address of the domain, signed, by the address of the invitation.
		r, at = w.invited(1 + 20)
		w.comes(at, w.reply("gmail", r, func(a *reply) { a.From, a.Attendee = "alias@example.org", "ravi21@example.org" }), "example.org")
		require.Equal(w.t, protocol.MeetingCancelled, w.get(r).State)
	})
}

// TestAnswer_Counter: another time is a proposal that the person sees, is told of, and answers with a move;
// there are only so many of them.
func TestAnswer_Counter(t *testing.T) {
	each(t, true, func(w *world) {
		w.notices("asha")
		r, at := w.invited(1)
		w.runJobs()
		told := len(w.told)
		counter := func(hours int, more string) {
			w.pass(time.Second)
			w.comes(at, w.reply("outlook", r, func(a *reply) {
				a.Method, a.Answer = "COUNTER", "TENTATIVE"
				a.More = "DTSTART:" + start.Add(time.Duration(hours)*time.Hour).Format("20060102T150405Z") + "\r\n" + more
			}))
		}
		counter(60, "COMMENT:Later\\, please\r\n")
		got := w.owned(r)
		require.Equal(w.t, protocol.MeetingApproved, got.State)
		require.Equal(w.t, protocol.AnswerProposed, got.Attendance.Answer)
		require.Equal(w.t, start.Add(60*time.Hour), *got.Attendance.StartsAt)
		require.Equal(w.t, start.Add(60*time.Hour+30*time.Minute), *got.Attendance.EndsAt)
		require.Equal(w.t, "Later, please", got.Attendance.Comment)
		require.Contains(w.t, got.Note, "move_meeting")
		w.runJobs()
		require.Len(w.t, w.told, told+1)
		for n := range 6 {
			counter(61+n, "")
		}
		require.Equal(w.t, start.Add(64*time.Hour), *w.owned(r).Attendance.StartsAt, "five of them")
		must.Get(does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(r), StartsAt: start.Add(64 * time.Hour).Format(time.RFC3339)}))(w.t)
		w.runJobs()
		require.Equal(w.t, []string{"REQUEST0", "REQUEST1"}, w.letters())
		counter(-5, "")
		require.Nil(w.t, w.owned(r).Attendance.StartsAt, "a time that is over")
		require.Equal(w.t, start.Add(64*time.Hour), w.get(r).StartsAt)
	})
}

// TestBounced: a mailbox that does not exist gets nothing more from any requester, and the person sees it; a link
// of a mail that came after all shows that it does.
func TestBounced(t *testing.T) {
	each(t, true, func(w *world) {
		r, id := w.invited(1)
		for range 2 {
			require.NoError(w.t, w.Bounced(context.Background(), id))
		}
		require.NoError(w.t, w.Bounced(context.Background(), "01k9y3v6k8e5w9q2x4z7c1m0ad"))
		got := w.owned(r)
		require.Equal(w.t, protocol.MeetingMailBounced, got.Mail)
		require.Contains(w.t, got.Note, "came back")
		n := len(w.sent)
		require.NoError(w.t, moves["move"](w, r))
		w.runJobs()
		require.Len(w.t, w.sent, n, "nothing more")
		w.pass(30 * time.Hour)
		must.Get(w.asks(stranger(9), "Ravi1+x@example.org", w.clock().Add(48*time.Hour).Truncate(time.Minute)))(w.t)
		w.runJobs()
		require.Len(w.t, w.sent, n, "nor a letter that asks")

		// Refused by the mail server at once.
		r = w.asked(5, w.clock().Add(50*time.Hour).Truncate(time.Minute))
		w.fail = fmt.Errorf("%w: %w", meeting.ErrMailbox, protocol.Errorf(protocol.InvalidRequest, "550"))
		w.runJobs()
		w.fail = nil
		require.NoError(w.t, moves["cancel"](w, r))
		w.pass(30 * time.Hour)
		must.Get(w.asks(stranger(10), "ravi5@example.org", w.clock().Add(60*time.Hour).Truncate(time.Minute)))(w.t)
		w.runJobs()
		require.Len(w.t, w.sent, n)
	})
}

// TestRemind: both sides are reminded a day and an hour before, in the times of both, once; not of what was
// moved or cancelled, not after the start, and not where the person wants no reminders.
func TestRemind(t *testing.T) {
	each(t, true, func(w *world) {
		w.notices("asha")
		var r protocol.MeetingReceipt
		count := func() (mails, notices int) {
			w.runJobs()
			ids := map[string]bool{}
			for _, l := range w.sent {
				if strings.Contains(l.Subject, "Reminder") {
					ids[l.ID] = true
					require.Regexp(w.t, `Europe/Berlin\)\n.*Asia/Kolkata\)`, l.Text, "the requester's zone first")
					require.Contains(w.t, l.Text, "/meetings/"+r.Request.ID+"?ticket=stoa_read_v")
				}
			}
			for _, n := range w.told {
				if n.Event == protocol.MeetingReminder {
					require.Contains(w.t, n.Title, "IST")
					require.Contains(w.t, n.Title, "CET")
					notices++
				}
			}
			return len(ids), notices
		}
		is := func(mails, notices int) {
			w.t.Helper()
			m, n := count()
			require.Equal(w.t, []int{mails, notices}, []int{m, n})
		}
		r, _ = w.invited(1) // in 49 hours
		w.dies = true
		w.pass(25*time.Hour - time.Millisecond)
		is(0, 0)
		w.pass(time.Millisecond)
		is(1, 1)
		w.fail = protocol.Errorf(protocol.Overloaded, "greylisted")
		w.pass(23 * time.Hour)
		is(1, 2)
		w.fail = nil
		w.pass(time.Minute)
		is(2, 2)
		w.dies = false

		for name, change := range map[string]func(r protocol.MeetingReceipt){
			"cancelled": func(r protocol.MeetingReceipt) { require.NoError(w.t, moves["cancel"](w, r)) },
			"off": func(protocol.MeetingReceipt) {
				rules := always()
				rules.Reminders = new(false)
				w.settings("asha", rules)
			},
			"late": func(protocol.MeetingReceipt) { w.pass(48*time.Hour + 30*time.Minute) }, // nothing ran until then
		} {
			w.settings("asha", always())
			w.sent, w.raw, w.told = nil, nil, nil
			begins := w.clock().Add(48 * time.Hour).Truncate(time.Minute)
			r = w.confirmed(map[string]int{"cancelled": 3, "off": 4, "late": 5}[name],
				protocol.NewMeeting{TimeZone: "Europe/Berlin", StartsAt: begins.Format(time.RFC3339)})
			require.NoError(w.t, moves["approve"](w, r))
			w.runJobs()
			change(r)
			for range 50 {
				w.pass(time.Hour)
				w.runJobs()
			}
			is(0, 0)
		}

		// Moved: of the new time alone.
		w.settings("asha", always())
		w.sent, w.raw, w.told = nil, nil, nil
		r = w.confirmed(6, protocol.NewMeeting{TimeZone: "Europe/Berlin", StartsAt: w.clock().Add(26 * time.Hour).Truncate(time.Minute).Format(time.RFC3339)})
		require.NoError(w.t, moves["approve"](w, r))
		require.NoError(w.t, moves["move"](w, r)) // in 120 hours
		w.pass(90 * time.Hour)
		is(0, 0)
		w.pass(7 * time.Hour)
		is(1, 1)
		w.pass(22*time.Hour + 30*time.Minute)
		is(2, 2)
	})
}

// notices makes the person be told of everything.
func (w *world) notices(handle string) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		s := storage.NotifySettings{Handle: handle, Webhook: "https://asha.example/hook", Events: slices.Clone(protocol.NoticeEvents)}
		return tx.Profiles().PutNotifySettings(ctx, s)
	}))
}

// one runs a test on SQLite, with a person, asha, who takes meetings at all hours.
func one(t *testing.T, fn func(w *world)) {
	now := &atomic.Int64{}
	now.Store(start.UnixMilli())
	w := open(t, storage.Config{}, now, true)
	w.person("asha")
	w.settings("asha", always())
	fn(w)
}
