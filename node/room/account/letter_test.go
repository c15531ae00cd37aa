package account

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// moody is a mail server that takes letters only while it is well.
type moody struct {
	ill  bool
	sent []string
}

func (m *moody) Send(_ context.Context, l Letter) error {
	if m.ill {
		return errors.New("the mail server answered 451")
	}
	m.sent = append(m.sent, l.To)
	return nil
}

func inEnglish(string) hall.Words { return words.English() }

// A server that wants to be asked again gets the link at the next attempt, and
// nobody gets two within two minutes.
func TestSendLink_AfterAFailedAttempt(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	server := &moody{ill: true}
	a := &Accounts{Base: "https://n1.example", Name: "n1", DB: db, Words: inEnglish, Mail: server}
	var acc storage.Account
	require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		acc, err = a.Open(ctx, tx, "Asha", protocol.RoleOwner, "asha@example.org")
		return err
	}))
	// send runs a job and returns the one that it enqueued, if any.
	send := func(j storage.Job) (left []storage.Job) {
		after := must.Get(a.Jobs()[storage.SignInJob](t.Context(), j))(t)
		if after != nil {
			require.NoError(t, db.Write(t.Context(), after))
		}
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
			left = page.Items
			return err
		}))
		return left
	}
	first := storage.Job{ID: 1, Kind: storage.SignInJob, Lane: letterLane, Attempt: 1, Args: []byte(`{"account":"` + acc.ID + `"}`), Dedupe: "one"}
	again := send(first)
	require.Len(t, again, 1)
	require.Empty(t, server.sent)
	require.Contains(t, again[0].LastError, "451", "the operator sees why it waits")
	require.Equal(t, first.Dedupe, again[0].Dedupe)
	require.Zero(t, again[0].Attempt, "a job that was tried would hold up its lane")
	server.ill = false
	send(again[0])
	require.Equal(t, []string{"asha@example.org"}, server.sent)
	send(storage.Job{ID: 3, Kind: storage.SignInJob, Attempt: 1, Args: first.Args})
	require.Len(t, server.sent, 1, "asked for again at once")
	send(storage.Job{ID: 3, Kind: storage.SignInJob, Attempt: 2, Args: first.Args})
	require.Len(t, server.sent, 2, "a process died over it: nobody knows whether the letter went out")

	server.ill = true
	last := storage.Job{ID: 4, Kind: storage.SignInJob, Attempt: 1, Args: []byte(`{"account":"` + acc.ID + `","try":8}`)}
	require.Equal(t, protocol.Gone, protocol.CodeOf(must.Err(a.Jobs()[storage.SignInJob](t.Context(), last))), "every row of tries ends")
}

// An address that several profiles name at once is asked once.
func TestSendConfirmation_OnceAnAddress(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	server := &moody{}
	a := &Accounts{Base: "https://n1.example", Name: "n1", DB: db, Words: inEnglish, Mail: server}
	for _, handle := range []string{"asha", "ravi"} {
		require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: handle, Mail: "victim@example.org"})
		}))
	}
	for _, handle := range []string{"asha", "ravi"} {
		must.Get(a.Jobs()[storage.ConfirmJob](context.Background(), storage.Job{ID: 1, Attempt: 1, Args: []byte(`{"handle":"` + handle + `"}`)}))(t)
	}
	require.Len(t, server.sent, 1)
}

// Anyone who knows an address can have links sent to it; there is an end to that.
func TestSendLink_Bounded(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	server := &moody{}
	a := &Accounts{Base: "https://n1.example", Name: "n1", DB: db, Words: inEnglish, Mail: server}
	var acc storage.Account
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		if acc, err = a.Open(ctx, tx, "Asha", protocol.RoleOwner, "asha@example.org"); err != nil {
			return err
		}
		for i := range linksAtOnce - 1 { // of some minutes ago
			err := tx.Tickets().Insert(ctx, storage.Ticket{Hash: [32]byte{byte(i)}, Purpose: storage.TicketSignIn, Account: acc.ID, Mail: acc.Mail,
				ExpiresAt: tx.Now.Add(20 * time.Minute)})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	for range 3 {
		must.Get(a.Jobs()[storage.SignInJob](t.Context(), storage.Job{ID: 1, Attempt: 2, Args: []byte(`{"account":"` + acc.ID + `"}`)}))(t)
	}
	require.Len(t, server.sent, 1)
}
