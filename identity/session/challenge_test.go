package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChallenger(t *testing.T) {
	t.Parallel()
	c, now := Challenger{Key: []byte(strings.Repeat("k", 32))}, time.Now()
	text := c.New(ByPasskey, "browser", now)
	key, until, ok := c.Check(text, ByPasskey, "browser", now.Add(ChallengeLifetime-time.Second))
	require.True(t, ok)
	require.Equal(t, now.Add(ChallengeLifetime).UnixMilli(), until.UnixMilli())
	again, _, _ := c.Check(text, ByPasskey, "browser", now)
	require.Equal(t, key, again)
	other, _, _ := c.Check(c.New(ByPasskey, "browser", now), ByPasskey, "browser", now)
	require.NotEqual(t, key, other)
	flipped := "0" + text[1:]
	if text[0] == '0' {
		flipped = "1" + text[1:]
	}
	for name, bad := range map[string]bool{
		"ended":           !good(c.Check(text, ByPasskey, "browser", now.Add(ChallengeLifetime))),
		"another purpose": !good(c.Check(text, ByEthereum, "browser", now)),
		"another browser": !good(c.Check(text, ByPasskey, "other", now)),
		"no browser":      !good(c.Check(c.New(ByPasskey, "", now), ByPasskey, "", now)),
		"another node":    !good(Challenger{Key: []byte("other")}.Check(text, ByPasskey, "browser", now)),
		"changed":         !good(c.Check(flipped, ByPasskey, "browser", now)),
		"in capitals":     !good(c.Check(strings.ToUpper(text)+"", ByPasskey, "browser", now)),
		"cut":             !good(c.Check(text[:78], ByPasskey, "browser", now)),
		"empty":           !good(c.Check("", ByPasskey, "browser", now)),
	} {
		require.True(t, bad, name)
	}
}

func good(_ [16]byte, _ time.Time, ok bool) bool { return ok }

func TestCode(t *testing.T) {
	t.Parallel()
	text, hash := NewCode()
	require.Regexp(t, `^([0-9A-HJKMNP-TV-Z]{5}-){3}[0-9A-HJKMNP-TV-Z]{5}$`, text)
	for _, typed := range []string{text, strings.ToLower(text), strings.ReplaceAll(text, "-", ""), " " + strings.ReplaceAll(text, "-", " ") + "\n",
		strings.NewReplacer("0", "o", "1", "l").Replace(text)} {
		got, ok := HashCode(typed)
		require.True(t, ok, typed)
		require.Equal(t, hash, got, typed)
	}
	for _, bad := range []string{"", text[:10], text + "A", strings.Repeat("U", 20), strings.Repeat("-", 20)} {
		_, ok := HashCode(bad)
		require.False(t, ok, bad)
	}
	other, _ := NewCode()
	require.NotEqual(t, text, other)
	ticket, ok := Hash(Ticket, strings.ReplaceAll(text, "-", "")+"AAAA")
	require.True(t, ok)
	require.NotEqual(t, hash, ticket)
}
