package proof

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// tell hands what one process tells to another, as it travels.
func tell(t *testing.T, from, to *Issuer) Usage {
	t.Helper()
	u := from.Used()
	raw := must.Get(json.Marshal(u))(t)
	read := must.JSON[Usage](raw)(t)
	to.Add(read)
	return u
}

// What is paid at one process raises the price at the other as if it had been
// paid there, and is told once.
func TestShare(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	issuer := func() *Issuer {
		i := New(Config{Master: make([]byte, 32), Audience: "n", Now: func() time.Time { return now }})
		i.Share()
		return i
	}
	one, two := issuer(), issuer()
	spam := NewText("Buy our lamps now, cheaper than anywhere else in the town")
	for range 7 {
		one.Paid("net", pow.Parameters{}, spam)
	}
	level := func(i *Issuer, network string) int { return i.Issue("board", network).Hint.Level }
	require.Equal(t, 3, level(one, "net"))
	require.Equal(t, 2, level(two, "net"))
	require.True(t, two.Covers(pow.Parameters{}, "net", spam))

	u := tell(t, one, two)
	require.Equal(t, 7, u.All)
	require.Len(t, u.Texts, 1)
	for _, network := range []string{"net", "other"} {
		require.Equal(t, level(one, network), level(two, network), network)
		require.Equal(t, one.alike.steps(spam, network, now), two.alike.steps(spam, network, now), network)
	}
	require.Equal(t, 3, level(two, "net"))
	require.False(t, two.Covers(pow.Parameters{}, "net", spam))
	require.True(t, one.Used().Empty(), "told once")
	require.True(t, two.Used().Empty(), "and not handed on")

	// A text that is like it joins the same group at the other.
	one.Paid("net", pow.Parameters{}, NewText("buy our lamps now - cheaper than anywhere else in the town!!"))
	tell(t, one, two)
	require.Len(t, two.alike.groups, 1)
	for range 61 * 2 { // the load of all processes
		one.Paid(fmt.Sprint(now), pow.Parameters{}, nil)
		now = now.Add(100 * time.Millisecond)
	}
	tell(t, one, two)
	require.Equal(t, level(one, "fresh"), level(two, "fresh"))
	require.Greater(t, level(two, "fresh"), 2)
}

// What a process tells is bounded, and what it reads is checked.
func TestShare_Bounds(t *testing.T) {
	t.Parallel()
	i := New(Config{Master: make([]byte, 32), Audience: "n"})
	i.Paid("net", pow.Parameters{}, NewText("who shares nothing counts nothing for others"))
	require.True(t, i.Used().Empty())
	i.Share()
	for n := range 3 * maxSharedTexts {
		i.Paid(fmt.Sprint("net", n%(2*maxSharedNetworks)), pow.Parameters{}, NewText(fmt.Sprintf("%x %[1]o text %[1]d about thing %[1]d of many", n*n*7919)))
	}
	for n := range 2 * maxSharedNetworks {
		i.Paid(fmt.Sprint("n", n), pow.Parameters{}, nil)
	}
	u := i.Used()
	require.Len(t, u.Texts, maxSharedTexts)
	require.Len(t, u.Networks, maxSharedNetworks)
	require.Equal(t, 3*maxSharedTexts+2*maxSharedNetworks, u.All)

	j := New(Config{Master: make([]byte, 32), Audience: "n"})
	j.Add(Usage{All: -1, Networks: map[string]int{"a": 1 << 60, "b": -1},
		Texts: []TextUse{{Marks: []byte("short")}, {Marks: make([]byte, 4*marks), Networks: map[string]int{"a": -3}}}})
	require.LessOrEqual(t, len(j.load.networks["a"]), mostTimes)
	require.Equal(t, 2+mostTimes/perStep, min(100, 2+j.load.steps("a", time.Now())))
}
