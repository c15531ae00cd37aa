package archive

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A writtenLine is one line of written.ndjson: exactly one of the four. A thread is followed by its messages.
type writtenLine struct {
	Thread  *writtenThread  `json:"thread,omitempty"`
	Message *messageRecord  `json:"message,omitempty"`
	Bid     *writtenBid     `json:"bid,omitempty"`
	Meeting *writtenMeeting `json:"meeting,omitempty"`
}

// writtenThread is a conversation that the profile began.
type writtenThread struct {
	ID        string    `json:"id" shape:"thread-id"`
	Handle    string    `json:"handle" shape:"kept-handle" doc:"Of the agent that it wrote to."`
	Kind      string    `json:"kind" enum:"question,quote_request,support"`
	State     string    `json:"state" enum:"open,answered,closed"`
	Callback  string    `json:"callback,omitempty" maxLength:"500" doc:"Where answers are sent."`
	CreatedAt time.Time `json:"createdAt"`
}

// writtenBid is a bid that the profile made.
type writtenBid struct {
	ID        string    `json:"id" shape:"bid-id"`
	Handle    string    `json:"handle" shape:"kept-handle" doc:"Of the person whose board it is on."`
	State     string    `json:"state" maxLength:"40"`
	Paise     int64     `json:"paise" minimum:"1"`
	Message   string    `json:"message" maxLength:"500"`
	URL       string    `json:"url,omitempty" maxLength:"500"`
	Category  string    `json:"category,omitempty" maxLength:"40"`
	UTR       string    `json:"utr,omitempty" maxLength:"100" doc:"The reference of the payment."`
	CreatedAt time.Time `json:"createdAt"`
}

// writtenMeeting is a meeting request that the profile made.
type writtenMeeting struct {
	ID        string    `json:"id" shape:"meeting-id"`
	Handle    string    `json:"handle" shape:"kept-handle" doc:"Of the person that it asked."`
	State     string    `json:"state" maxLength:"40"`
	Requester string    `json:"requester" maxLength:"80"`
	Email     string    `json:"email,omitempty" maxLength:"254"`
	Purpose   string    `json:"purpose" maxLength:"500"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	TimeZone  string    `json:"timezone,omitempty" maxLength:"60"`
	CreatedAt time.Time `json:"createdAt"`
}

// written writes what the profile wrote to others on this node, newest first. Without any there is no member: older nodes refuse members
// that they do not know.
func (e *exporting) written(ctx context.Context) error {
	var lines []func(func(any) error) error
	err := pages(func(after string) (protocol.Page[storage.StoredThread], error) {
		return e.tx.Threads().Written(ctx, e.handle, protocol.MaxLimit, after)
	}, func(t *storage.StoredThread) {
		r := &writtenThread{ID: t.ID, Handle: t.Handle, Kind: string(t.Kind), State: string(t.State), Callback: t.Callback, CreatedAt: t.CreatedAt}
		lines = append(lines, func(line func(any) error) error {
			if err := line(writtenLine{Thread: r}); err != nil {
				return err
			}
			return e.messages(ctx, t, protocol.WriterSide, func(m *messageRecord) error { return line(writtenLine{Message: m}) })
		})
	})
	if err == nil {
		err = pages(func(after string) (protocol.Page[storage.StoredBid], error) {
			return e.tx.Bids().Written(ctx, e.handle, protocol.MaxLimit, after)
		}, func(b *storage.StoredBid) {
			r := &writtenBid{ID: b.ID, Handle: b.Handle, State: string(b.State), Paise: b.Paise, Message: b.Message, URL: b.URL, Category: b.Category,
				UTR: b.UTR, CreatedAt: b.BidAt}
			lines = append(lines, func(line func(any) error) error { return line(writtenLine{Bid: r}) })
		})
	}
	if err == nil {
		err = pages(func(after string) (protocol.Page[storage.StoredMeeting], error) {
			return e.tx.Meetings().Written(ctx, e.handle, protocol.MaxLimit, after)
		}, func(m *storage.StoredMeeting) {
			r := &writtenMeeting{ID: m.ID, Handle: m.Handle, State: string(m.State), Requester: m.Name, Email: m.Mail, Purpose: m.Purpose,
				StartsAt: m.StartsAt, EndsAt: m.EndsAt, TimeZone: m.TimeZone, CreatedAt: m.AskedAt}
			lines = append(lines, func(line func(any) error) error { return line(writtenLine{Meeting: r}) })
		})
	}
	if err != nil || len(lines) == 0 {
		return err
	}
	return e.member(writtenFile, func(line func(any) error) error {
		for _, write := range lines {
			if err := write(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxWritten is how many things of a kind an archive holds of what the profile wrote to others, the newest.
const maxWritten = 5000

// pages calls fn for the newest items of a list, up to maxWritten.
func pages[T any](list func(after string) (protocol.Page[T], error), fn func(*T)) error {
	for after, n := "", 0; ; {
		page, err := list(after)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if fn(&page.Items[i]); n == maxWritten {
				return nil
			}
			n++
		}
		if page.Next == nil {
			return nil
		}
		after = *page.Next
	}
}

// writtenStep checks a line and stores nothing: what the profile wrote to others is on the node where they are.
func (im *importing) writtenStep(r record) (step, error) {
	var in writtenLine
	err := im.decode(r, &in)
	return step{begins: true, do: func(context.Context, *storage.Tx) error {
		if r.n == 1 {
			im.note("what the profile wrote to others (written.ndjson) stays with them on the node that the archive is from")
		}
		return nil
	}}, err
}
