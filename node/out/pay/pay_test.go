package pay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

func TestRef(t *testing.T) {
	t.Parallel()
	bid := protocol.NewID(protocol.BidID, time.Now())
	require.LessOrEqual(t, len(Ref(bid, 999999999)), MaxRef)
	for _, n := range []int{1, 2, 10, 4711} {
		got, at, ok := ParseRef(Ref(bid, n))
		require.True(t, ok)
		require.Equal(t, bid, got)
		require.Equal(t, n, at)
	}
	for _, s := range []string{
		"", "-", "-1", bid, bid + "-", bid + "-0", bid + "-01", bid + "-+1", bid + "--1", bid + "-x", strings.Repeat("b", 39) + "-1",
		bid + "-99999999999999999999",
	} {
		_, _, ok := ParseRef(s)
		require.Equal(t, s == bid+"--1", ok, s) // the bid would be another
	}
	require.Equal(t, "BID01J0A1", Plain("bid_01j0a-1"))
	require.Empty(t, Plain("आ-_ \n"))
}

// TestMAC: the vector is of the vendor's form of webhook signatures.
func TestMAC(t *testing.T) {
	t.Parallel()
	body := []byte(`{"event":"payment_link.paid"}`)
	const mac = "881f5d46466306406ea6299bdb81d8b02d3cd63e1695b07406cf527bf5189685"
	require.Equal(t, mac, MAC("whsec_test", body))
	for name, c := range map[string]struct {
		secrets []string
		mac     string
		want    bool
	}{
		"the secret":           {[]string{"whsec_test"}, mac, true},
		"the older secret":     {[]string{"new", "whsec_test"}, mac, true},
		"another":              {[]string{"new"}, mac, false},
		"none":                 {nil, mac, false},
		"empty secret":         {[]string{""}, MAC("", body), false},
		"empty before another": {[]string{"", "whsec_test"}, mac, true},
		"upper case":           {[]string{"whsec_test"}, strings.ToUpper(mac), false},
		"shorter":              {[]string{"whsec_test"}, mac[:63], false},
		"longer":               {[]string{"whsec_test"}, mac + "0", false},
		"no signature":         {[]string{"whsec_test"}, "", false},
		"beyond the bound":     {append(make([]string, protocol.MaxWebhookSecrets), "whsec_test"), mac, false},
	} {
		require.Equal(t, c.want, Authentic(c.secrets, body, c.mac), name)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection reset")
	err := fmt.Errorf("make a link: %w", &Failure{Kind: ErrTemporary, Status: 429, RetryAfter: time.Minute, Text: "busy", Err: cause})
	require.ErrorIs(t, err, ErrTemporary)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, ErrRefused)
	require.Equal(t, time.Minute, RetryAfter(err))
	require.Zero(t, RetryAfter(cause))
	require.EqualError(t, err, "make a link: busy")
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	caps := Caps{MinExpiry: 15 * time.Minute, MaxExpiry: 24 * time.Hour, MinPaise: 100, MaxPaise: 1000}
	for name, c := range map[string]struct {
		change func(*LinkRequest)
		want   error
	}{
		"good":           {func(*LinkRequest) {}, nil},
		"least expiry":   {func(r *LinkRequest) { r.ExpiresAt = now.Add(15 * time.Minute) }, nil},
		"too near":       {func(r *LinkRequest) { r.ExpiresAt = now.Add(15*time.Minute - 1) }, ErrExpiry},
		"most expiry":    {func(r *LinkRequest) { r.ExpiresAt = now.Add(24 * time.Hour) }, nil},
		"too far":        {func(r *LinkRequest) { r.ExpiresAt = now.Add(24*time.Hour + 1) }, ErrExpiry},
		"least amount":   {func(r *LinkRequest) { r.AmountPaise = 100 }, nil},
		"too little":     {func(r *LinkRequest) { r.AmountPaise = 99 }, ErrAmount},
		"most amount":    {func(r *LinkRequest) { r.AmountPaise = 1000 }, nil},
		"too much":       {func(r *LinkRequest) { r.AmountPaise = 1001 }, ErrAmount},
		"other currency": {func(r *LinkRequest) { r.Currency = "inr" }, ErrAmount},
		"reference":      {func(r *LinkRequest) { r.Ref = "a/b" }, ErrRefused},
	} {
		r := LinkRequest{Ref: "bid_1-1", AmountPaise: 500, Currency: protocol.Rupee, ExpiresAt: now.Add(20 * time.Minute)}
		c.change(&r)
		if err := caps.Admit(r, now); c.want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.want, name)
		}
	}
	require.ErrorIs(t, caps.AdmitRefund(500), ErrUnsupported)
	caps.Refunds = true
	require.NoError(t, caps.AdmitRefund(500))
	require.ErrorIs(t, caps.AdmitRefund(50), ErrAmount)
	require.ErrorIs(t, Caps{Refunds: true}.AdmitRefund(0), ErrAmount)
}
