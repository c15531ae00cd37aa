package proof

import (
	"context"
	"crypto/ed25519"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

func testIssuer(now *time.Time) *Issuer {
	flat := 0
	return New(Config{Master: []byte("0123456789abcdef"), Audience: "a.example", Now: func() time.Time { return *now }, Flat: &flat, Cost: 2})
}

func solve(t testing.TB, c pow.Challenge) pow.Solution {
	t.Helper()
	return must.Get(pow.Solve(context.Background(), c))(t)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 23, 55, 0, 0, time.UTC)
	other := New(Config{Master: []byte("another master!!"), Audience: "a.example", Now: func() time.Time { return start }})
	sibling := New(Config{Master: []byte("0123456789abcdef"), Audience: "b.example", Now: func() time.Time { return start }})
	tests := []struct {
		name    string
		purpose string
		pay     string
		change  func(*pow.Solution)
		later   time.Duration
		want    protocol.Code
	}{
		{name: "good", purpose: "board", pay: "board"},
		{name: "contact pays everything", purpose: "contact", pay: "report"},
		{name: "over midnight", purpose: "board", pay: "board", later: 8 * time.Minute},
		{name: "other purpose", purpose: "report", pay: "board", want: protocol.PowInvalid},
		{name: "expired", purpose: "board", pay: "board", later: 10*time.Minute + time.Second, want: protocol.PowExpired},
		{name: "expiry pushed out", purpose: "board", pay: "board", change: func(s *pow.Solution) { s.Challenge.Parameters.ExpiresAt++ }, want: protocol.PowInvalid},
		{name: "cheaper", purpose: "board", pay: "board", change: func(s *pow.Solution) { s.Challenge.Parameters.Cost = 1 }, want: protocol.PowInvalid},
		{name: "shorter prefix", purpose: "board", pay: "board", change: func(s *pow.Solution) { s.Challenge.Parameters.KeyPrefix = "" }, want: protocol.PowInvalid},
		{name: "purpose changed", purpose: "report", pay: "board", change: func(s *pow.Solution) { s.Challenge.Parameters.Data.Purpose = "board" },
			want: protocol.PowInvalid},
		{name: "unknown day", purpose: "board", pay: "board", change: func(s *pow.Solution) { s.Challenge.Parameters.Data.KeyID = "2020-01-01" },
			want: protocol.PowInvalid},
		{name: "wrong counter", purpose: "board", pay: "board", change: func(s *pow.Solution) { s.Solution.Counter += 1 }, want: protocol.PowInvalid},
		{name: "of another deployment", purpose: "board", pay: "board", change: func(s *pow.Solution) { *s = solve(t, other.Issue("board", "n")) },
			want: protocol.PowInvalid},
		{name: "of another node with the same secret", purpose: "board", pay: "board",
			change: func(s *pow.Solution) { *s = solve(t, sibling.Issue("board", "n")) }, want: protocol.PowInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := start
			issuer := testIssuer(&now)
			s := solve(t, issuer.Issue(tt.purpose, "n"))
			if tt.change != nil {
				tt.change(&s)
			}
			now = now.Add(tt.later)
			spend, _, err := issuer.Check(context.Background(), []byte(s.Encode()), tt.pay, "n")
			require.Equal(t, tt.want, protocol.CodeOf(err), "%v", err)
			if tt.want == "" {
				require.NotZero(t, spend.Key)
				require.Equal(t, protocol.PowSpent, spend.Code)
				require.Greater(t, spend.Until.Unix(), s.Challenge.Parameters.ExpiresAt, "spent for as long as the challenge is good")
			}
		})
	}
}

func TestCheck_SurvivesRestart(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := solve(t, testIssuer(&now).Issue("board", "n"))
	first, _, err := testIssuer(&now).Check(context.Background(), []byte(s.Encode()), "board", "n")
	require.NoError(t, err)
	again, _, err := testIssuer(&now).Check(context.Background(), []byte(s.Encode()), "board", "n")
	require.NoError(t, err)
	require.Equal(t, first.Key, again.Key, "what is spent is the same at every process")
}

func TestCheck_WrongAnswerBurns(t *testing.T) {
	t.Parallel()
	now := time.Now()
	issuer := testIssuer(&now)
	good := solve(t, issuer.Issue("board", "n"))
	bad := good
	bad.Solution.DerivedKey = "00" + strings.Repeat("0", 62)
	_, _, err := issuer.Check(context.Background(), []byte(bad.Encode()), "board", "n")
	require.Equal(t, protocol.PowInvalid, protocol.CodeOf(err))
	_, _, err = issuer.Check(context.Background(), []byte(good.Encode()), "board", "n")
	require.Equal(t, protocol.PowInvalid, protocol.CodeOf(err), "one wrong answer is enough")
}

func TestLevel(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	issuer := New(Config{Master: []byte("0123456789abcdef"), Now: func() time.Time { return now }, Target: 10})
	at := func(purpose, network string) int { return issuer.Issue(purpose, network).Hint.Level }
	require.Equal(t, 2, at("board", "a"))
	require.Equal(t, 1, at("report", "a"))
	require.Equal(t, 3, at("bid", "a"))
	for range 5 {
		issuer.Paid("a", pow.Parameters{}, nil)
	}
	require.Equal(t, 3, at("board", "a"), "five used challenges cost the network one level")
	require.Equal(t, 2, at("board", "b"), "and nobody else")
	for range 35 {
		issuer.Paid("c", pow.Parameters{}, nil)
	}
	require.Equal(t, 4, at("board", "b"), "40 writes a minute are four times the target")
	require.Equal(t, 7, at("bid", "c"), "the ladder ends")
	now = now.Add(11 * time.Minute)
	require.Equal(t, 2, at("board", "c"), "and everything is forgotten")
}

// BenchmarkEd25519Bare is the baseline: what a signature costs instead.
func BenchmarkEd25519Bare(b *testing.B) {
	pub, priv, err := ed25519.GenerateKey(nil)
	require.NoError(b, err)
	message := []byte(strings.Repeat("x", 450))
	sig := ed25519.Sign(priv, message)
	for b.Loop() {
		if !ed25519.Verify(pub, message, sig) {
			b.Fatal("not verified")
		}
	}
}

func BenchmarkRefuseForged(b *testing.B) {
	now := time.Now()
	issuer := testIssuer(&now)
	s := solve(b, issuer.Issue("board", "n"))
	s.Challenge.Signature = strings.Repeat("0", 64)
	raw := []byte(s.Encode())
	for b.Loop() {
		if _, _, err := issuer.Check(context.Background(), raw, "board", "n"); protocol.CodeOf(err) != protocol.PowInvalid {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefuseExpired(b *testing.B) {
	now := time.Now()
	issuer := testIssuer(&now)
	raw := []byte(solve(b, issuer.Issue("board", "n")).Encode())
	now = now.Add(time.Hour)
	for b.Loop() {
		if _, _, err := issuer.Check(context.Background(), raw, "board", "n"); protocol.CodeOf(err) != protocol.PowExpired {
			b.Fatal(err)
		}
	}
}

func BenchmarkAccept(b *testing.B) {
	now := time.Now()
	issuer := New(Config{Master: []byte("0123456789abcdef"), Now: func() time.Time { return now }})
	raw := []byte(solve(b, issuer.Issue("board", "n")).Encode())
	for b.Loop() {
		if _, _, err := issuer.Check(context.Background(), raw, "board", "n"); err != nil {
			b.Fatal(err)
		}
	}
}

// A proof that pays for something else than a write is used up by it.
func TestUse(t *testing.T) {
	t.Parallel()
	i := New(Config{Master: []byte("0123456789abcdef"), Audience: "a.example"})
	general, board := solve(t, i.Issue(AnyPurpose, "n")), solve(t, i.Issue("board", "n"))
	ctx := t.Context()
	code := func(err error) protocol.Code { return protocol.CodeOf(err) }
	require.Equal(t, protocol.PowInvalid, code(i.Use(ctx, []byte(board.Encode()), "", "n")), "of another purpose")
	require.NoError(t, i.Use(ctx, []byte(board.Encode()), "board", "n"))
	var wg sync.WaitGroup
	var good atomic.Int32
	for range 20 {
		wg.Go(func() {
			if i.Use(ctx, []byte(general.Encode()), "", "n") == nil {
				good.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, good.Load(), "of twenty at once")
	_, _, err := i.Check(ctx, []byte(general.Encode()), "board", "n")
	require.Equal(t, protocol.PowInvalid, code(err), "it pays for no write any more")
}
