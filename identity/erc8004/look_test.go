package erc8004

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLook: each endpoint says what it answers now, whatever the others do.
func TestLook(t *testing.T) {
	t.Parallel()
	fine, other, old, broken := newStub(t), newStub(t), newStub(t), newStub(t)
	other.chain, old.headTime = 1, time.Now().Add(-3*time.Hour)
	broken.answer = func(w http.ResponseWriter, _ []byte) bool { http.Error(w, "no", http.StatusBadGateway); return true }
	r := newTestReader(t, nil, fine, other, old, broken)
	all := r.Look(t.Context())
	require.Len(t, all, 4)
	require.Equal(t, EndpointState{Chain: stubChain, Host: all[0].Host, Head: 100, At: time.Unix(fine.headTime.Unix(), 0).UTC()}, all[0])
	require.True(t, all[1].Wrong)
	require.ErrorIs(t, all[1].Err, errWrongChain)
	require.True(t, all[2].Stuck)
	require.NoError(t, all[2].Err)
	require.Error(t, all[3].Err)
	require.False(t, all[3].Wrong)
}
