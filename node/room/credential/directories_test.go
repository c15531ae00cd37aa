package credential

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// Key directories of a host that the operator blocked or rejects are not fetched.
func TestDirectories_Blocked(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "rejected.example", Policy: storage.PolicyReject}); err != nil {
			return err
		}
		if err := tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "silent.example", Policy: storage.PolicySilence}); err != nil {
			return err
		}
		return tx.Blocks().Put(ctx,
			protocol.Block{ID: protocol.NewID(protocol.BlockID, tx.Now), Kind: protocol.BlockHost, Value: "blocked.example", CreatedAt: tx.Now})
	}))
	var asked []string
	client := http.Client{Transport: notBlocked{db, answers(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host)
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	})}}
	for host, want := range map[string]bool{
		"blocked.example": true, "keys.blocked.example:8443": true, "rejected.example": true, "silent.example": false, "unblocked.example": false,
	} {
		asked = nil
		res, err := client.Get("https://" + host + "/.well-known/http-message-signatures-directory")
		if err == nil {
			res.Body.Close()
		}
		_, refused := errors.AsType[*outbound.Refused](err)
		require.Equal(t, want, refused, host)
		require.Equal(t, !want, len(asked) == 1, host)
	}
}
