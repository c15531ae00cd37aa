package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/sandbox"
	"stoa/protocol/must"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const ref = "bid_01j0000000000000000000000a-1"

func open(t *testing.T, secret string) *sandbox.Provider {
	t.Helper()
	p := must.Get(sandbox.New(sandbox.Options{
		Enabled: true, Secret: secret, Page: "https://n1.example/pay/sandbox/", Now: func() time.Time { return noon },
	}))(t)
	return p
}

var secret = strings.Repeat("s", 32)

func TestExercise(t *testing.T) {
	t.Parallel()
	paytest.Exercise(t, func(t *testing.T) paytest.Rail {
		p := open(t, secret)
		return paytest.Rail{
			Provider: p, Now: func() time.Time { return noon },
			Pay: func(t *testing.T, l pay.Link, _ int64) []paytest.Hook {
				hooks := must.Get(p.Press(sandbox.Pay, l.ProviderID))(t)
				return []paytest.Hook{{Header: hooks[0].Header, Body: hooks[0].Body}}
			},
		}
	})
}

// TestNew: the sandbox does not exist unless the settings say so.
func TestNew(t *testing.T) {
	t.Parallel()
	_, err := sandbox.New(sandbox.Options{Secret: secret})
	require.ErrorIs(t, err, pay.ErrDisabled)
	_, err = sandbox.New(sandbox.Options{Enabled: true, Secret: secret[1:]})
	require.ErrorIs(t, err, pay.ErrAccount)
	require.True(t, open(t, secret).Caps().Test)
}

func TestPress(t *testing.T) {
	t.Parallel()
	p := open(t, secret)
	until := noon.Add(20 * time.Minute)
	l, err := p.CreateLink(t.Context(), pay.LinkRequest{Ref: ref, AmountPaise: 1500_01, Currency: "INR", ExpiresAt: until})
	require.NoError(t, err)
	require.Equal(t, "https://n1.example/pay/sandbox/"+l.ProviderID, l.URL)
	type outcome struct {
		kind    pay.Kind
		payment string
		paise   int64
		at      time.Time
	}
	for button, want := range map[sandbox.Button][]outcome{
		sandbox.Pay:       {{pay.Paid, "sbxpay_" + ref + "_1", 1500_01, noon}},
		sandbox.Fail:      {{pay.Ignored, "sbxpay_" + ref + "_0", 1500_01, noon}},
		sandbox.PayLate:   {{pay.Paid, "sbxpay_" + ref + "_late", 1500_01, until.Add(3 * time.Minute)}},
		sandbox.PayTwice:  {{pay.Paid, "sbxpay_" + ref + "_1", 1500_01, noon}, {pay.Paid, "sbxpay_" + ref + "_2", 1500_01, noon}},
		sandbox.PayPartly: {{pay.Partial, "sbxpay_" + ref + "_part", 750_00, noon}},
	} {
		require.Contains(t, sandbox.Buttons, button)
		hooks := must.Get(p.Press(button, l.ProviderID))(t)
		var got []outcome
		for _, h := range hooks {
			events := must.Get(p.ParseWebhook(h.Header, h.Body))(t)
			require.Len(t, events, 1)
			e := events[0]
			require.Equal(t, ref, e.Ref)
			require.Equal(t, h.At.UTC(), e.OccurredAt)
			got = append(got, outcome{e.Kind, e.PaymentID, e.AmountPaise, e.OccurredAt})
		}
		require.Equal(t, want, got, button)
	}
	require.Len(t, sandbox.Buttons, 5)
	_, err = p.Press("steal", l.ProviderID)
	require.ErrorIs(t, err, pay.ErrRefused)
	for _, id := range []string{"", "sbx_", "sbx_1_2_", "sbx_+1_2_a", "sbx_01_2_a", "sbx_0_2_a", "sbx_-1_2_a", "plink_1", "sbx_1_2_" + strings.Repeat("a", 41)} {
		_, err = p.Press(sandbox.Pay, id)
		require.ErrorIs(t, err, pay.ErrUnknown, id)
	}
}
