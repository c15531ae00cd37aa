package mcpapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// TestHub_Look: one look reads perLook resources, in turn, each once for all who follow it, and tells those whose resource has changed.
func TestHub_Look(t *testing.T) {
	t.Parallel()
	h := NewHub(func() uint64 { return 0 })
	h.running = true // the test looks itself
	reads, changed := map[string]int{}, map[string]bool{}
	watchOf := func(uri string) *watch {
		return &watch{key: uri, uri: uri, of: map[*listener]bool{}, read: func(context.Context) (sum [sha256.Size]byte, ok bool) {
			if reads[uri]++; changed[uri] {
				sum[0] = 1
			}
			return sum, true
		}}
	}
	var all []*listener
	for i := range 4 { // the same 40, and 10 of its own
		l := must.Get(h.join(fmt.Sprint(i), false))(t)
		for n := range maxFollowed {
			uri := fmt.Sprint("all/", n)
			if n >= 40 {
				uri = fmt.Sprint(i, "/", n)
			}
			require.True(t, h.follow(l, watchOf(uri)))
		}
		require.False(t, h.follow(l, watchOf("more")), "a stream follows at most %d", maxFollowed)
		all = append(all, l)
	}
	require.Equal(t, 4, h.Streams())
	require.Equal(t, 80, h.Watched(), "what two follow is one")
	turn := h.look(h.all(nil))
	require.Len(t, reads, perLook)
	turn = h.look(h.all(turn)) // a commit meanwhile: what was not read yet is first
	require.Len(t, reads, 80)
	require.Len(t, turn, 80-perLook)
	for _, l := range all {
		told, _ := h.take(l)
		require.Empty(t, told)
	}
	changed["all/1"], changed["2/41"] = true, true
	for range 2 { // the second time nothing has changed
		for turn = h.all(turn); len(turn) > 0; {
			turn = h.look(turn)
		}
	}
	for i, l := range all {
		want := []string{"all/1"}
		if i == 2 {
			want = append(want, "2/41")
		}
		told, _ := h.take(l)
		require.ElementsMatch(t, want, told)
	}
	for _, l := range all[1:] {
		h.leave(l)
	}
	require.Equal(t, 50, h.Watched(), "what nobody follows is forgotten")
	require.Len(t, h.all(h.all(nil)), 50)
	h.leave(all[0])
	require.True(t, h.rest())
	require.Zero(t, h.taken)
	require.Empty(t, h.networks)
}

// TestHub_Full: strangers have half of a process's streams.
func TestHub_Full(t *testing.T) {
	t.Parallel()
	h := NewHub(func() uint64 { return 0 })
	for i := range maxListeners / 2 {
		must.Get(h.join(fmt.Sprint(i), false))(t)
	}
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(h.join("one more", false))))
	must.Get(h.join("one more", true))(t)
}
