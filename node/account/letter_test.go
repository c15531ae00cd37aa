package account

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
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

// A server that wants to be asked again gets the link at the next attempt, and
// nobody gets two within two minutes.
func TestSendLink_AfterAFailedAttempt(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	server := &moody{ill: true}
	a := &Accounts{Base: "https://n1.example", Name: "n1", DB: db, Mail: server}
	var acc storage.Account
	require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		acc, err = a.Open(ctx, tx, "Asha", protocol.RoleOwner, "asha@example.org")
		return err
	}))
	send := func(id int64, attempt int) error {
		_, err := a.SendLink(context.Background(), storage.Job{ID: id, Attempt: attempt, Args: []byte(`{"account":"` + acc.ID + `"}`)})
		return err
	}
	require.Error(t, send(1, 1))
	server.ill = false
	require.NoError(t, send(1, 2))
	require.Equal(t, []string{"asha@example.org"}, server.sent)
	require.NoError(t, send(2, 1))
	require.Len(t, server.sent, 1, "asked for again at once")
}

// An address that several profiles name at once is asked once.
func TestSendConfirmation_OnceAnAddress(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	server := &moody{}
	a := &Accounts{Base: "https://n1.example", Name: "n1", DB: db, Mail: server}
	for _, handle := range []string{"asha", "ravi"} {
		require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.PutNotifySettings(ctx, storage.NotifySettings{Handle: handle, Mail: "victim@example.org"})
		}))
	}
	for _, handle := range []string{"asha", "ravi"} {
		_, err := a.SendConfirmation(context.Background(), storage.Job{ID: 1, Attempt: 1, Args: []byte(`{"handle":"` + handle + `"}`)})
		require.NoError(t, err)
	}
	require.Len(t, server.sent, 1)
}
