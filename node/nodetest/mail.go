package nodetest

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/room/account"
)

// Postbox keeps the letters of a node.
type Postbox struct {
	Greylists string     // an address that is to be asked again later
	mu        sync.Mutex // guards letters
	Letters   []account.Letter
}

// Send implements account.Mailer.
func (p *Postbox) Send(_ context.Context, l account.Letter) error {
	if l.To == p.Greylists {
		return errors.New("the mail server answered 451")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Letters = append(p.Letters, l)
	return nil
}

// Next runs the node's jobs until a letter is there.
func (p *Postbox) Next(t *testing.T, h *House) account.Letter {
	t.Helper()
	var l account.Letter
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.Letters) == 0 {
			return false
		}
		l, p.Letters = p.Letters[0], p.Letters[1:]
		return true
	}, time.Minute, 20*time.Millisecond)
	return l
}

// Work does the node's jobs until the test ends.
func (h *House) Work() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Worker.Run(ctx) }()
	h.T.Cleanup(func() { stop(); <-done })
}

// CodeInMail finds the code of a letter that asks to confirm an address.
var CodeInMail = regexp.MustCompile(`(?m)^[A-Za-z0-9_-]{32}$`)

// MeetingLinkInMail finds the link of a letter about a meeting; its group is the ticket.
var MeetingLinkInMail = regexp.MustCompile(`http\S*/meeting-link\?ticket=(stoa_read_[A-Za-z0-9_-]+)`)

// MeetingHouse is a node that sends mail, with asha, who takes meeting requests by some settings.
func MeetingHouse(t *testing.T, settings string, change ...func(*node.Config)) (*House, *Doors, *Postbox) {
	t.Helper()
	h := New(t, change...)
	box := &Postbox{}
	h.Accounts.Mail = box
	h.Hosted("asha")
	d := &Doors{T: t, House: h, Token: h.OwnerToken("asha")}
	h.Work()
	d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true`+settings+`}`, d.Token, nil)
	return h, d, box
}

// MachineZ is a time as programs write it, in UTC.
func MachineZ(t time.Time) string { return t.UTC().Format(time.RFC3339) }
