package reputation

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/protocol"
	"stoa/storage"
)

func TestRatingOf(t *testing.T) {
	t.Parallel()
	long, _ := new(big.Int).SetString("100000000000000000000", 10) // 100 with 18 decimals
	for _, c := range []struct {
		value    *big.Int
		decimals uint8
		want     int64
		ok       bool
	}{
		{big.NewInt(0), 0, 0, true}, {big.NewInt(100), 0, 10000, true}, {big.NewInt(101), 0, 0, false}, {big.NewInt(-1), 0, 0, false},
		{big.NewInt(755), 1, 7550, true}, {big.NewInt(85559), 3, 8556, true}, {big.NewInt(10001), 2, 0, false}, {long, 18, 10000, true},
		{big.NewInt(1), 19, 0, false}, {nil, 0, 0, false}, {new(big.Int).Neg(long), 18, 0, false},
	} {
		got, ok := erc8004.Rating(c.value, c.decimals)
		require.Equal(t, c.ok, ok, "%s/%d", c.value, c.decimals)
		require.Equal(t, c.want, got, "%s/%d", c.value, c.decimals)
	}
	require.Equal(t, "4.5", protocol.Stars(9000))
	require.Equal(t, "5", protocol.Stars(10000))
	require.InDelta(t, 4.3, round1(8550, 2000), 1e-9)
}

func TestDataOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uri, want string
		why       protocol.ReviewReason
	}{
		{"data:,a%20b", "a b", ""}, {"data:text/plain;base64,YQ==", "a", ""}, {"data:application/json;base64,YQ", "a", ""},
		{"data:nothing", "", protocol.UnreadableURI}, {"data:;base64,%%%", "", protocol.UnreadableURI}, {"data:;base64,?", "", protocol.UnreadableURI},
		{"data:," + strings.Repeat("a", protocol.MaxReviewFile), strings.Repeat("a", protocol.MaxReviewFile), ""},
		{"data:," + strings.Repeat("a", protocol.MaxReviewFile+1), "", protocol.FileTooLarge},
	} {
		got, why := dataOf(c.uri)
		require.Equal(t, c.why, why, protocol.Clip(c.uri, 40))
		require.Equal(t, c.want, string(got))
	}
}

// TestEvents are the reasons that an event alone gives, and those of a payment that a test of the chain
// cannot make.
func TestEvents(t *testing.T) {
	t.Parallel()
	shop := storage.FeedbackAgent{Agent: "eip155:1:0x00000000000000000000000000000000000000aa:1", Owner: "0x1", Wallet: "0x2"}
	event := erc8004.Feedback{Client: "0x3", Value: big.NewInt(90), Tag1: "starred", URI: "https://a.example/f", Hash: [32]byte{1}, Block: 9, Place: 2}
	with := func(change func(*erc8004.Feedback)) protocol.ReviewReason {
		e := event
		change(&e)
		return feedbackOf(e, shop).Reason
	}
	require.Equal(t, protocol.ReviewIsChecked, with(func(*erc8004.Feedback) {}))
	require.Equal(t, protocol.NotStarred, with(func(e *erc8004.Feedback) { e.Tag1 = "quality" }))
	require.Equal(t, protocol.SelfReview, with(func(e *erc8004.Feedback) { e.Client = "0x1" }))
	require.Equal(t, protocol.UnreadableURI, with(func(e *erc8004.Feedback) { e.URI = "https://a.example/" + strings.Repeat("a", maxKeptURI) }))
	require.Equal(t, protocol.UnreadableURI, with(func(e *erc8004.Feedback) { e.URI = "file:///etc/passwd" }))

	good := erc8004.Payment{Found: true, Block: 8, Wallet: "0x2", Amount: big.NewInt(5)}
	for name, c := range map[string]struct {
		change func(*erc8004.Payment)
		why    protocol.ReviewReason
	}{
		"good":                    {func(*erc8004.Payment) {}, protocol.ReviewIsChecked},
		"failed":                  {func(p *erc8004.Payment) { p.Failed = true }, protocol.PaymentFailed},
		"later":                   {func(p *erc8004.Payment) { p.Block = 10 }, protocol.PaymentLate},
		"later in the block":      {func(p *erc8004.Payment) { p.Block, p.Place = 9, 3 }, protocol.PaymentLate},
		"earlier in the block":    {func(p *erc8004.Payment) { p.Block, p.Place = 9, 1 }, protocol.ReviewIsChecked},
		"to another":              {func(p *erc8004.Payment) { p.Amount, p.ToOther = nil, true }, protocol.PaymentPayee},
		"nothing":                 {func(p *erc8004.Payment) { p.Amount = nil }, protocol.PaymentNothing},
		"to the reviewer's own":   {func(p *erc8004.Payment) { p.Wallet = "0x3" }, protocol.PaymentNothing},
		"to an agent with no one": {func(p *erc8004.Payment) { p.Wallet = "" }, protocol.PaymentNothing},
	} {
		f, p := feedbackOf(event, shop), good
		c.change(&p)
		require.False(t, readPayment(&f, p, 1), name)
		require.Equal(t, c.why, f.Reason, name)
	}
	f := feedbackOf(event, shop)
	require.True(t, readPayment(&f, erc8004.Payment{}, 1), "perhaps later")
}

// TestReadFile: a file that is the one of its event, and what it names as proof.
func TestReadFile(t *testing.T) {
	t.Parallel()
	hash := "0x" + strings.Repeat("ab", 32)
	proof := func(from, chain, tx string) string {
		return fmt.Sprintf(`,"proofOfPayment":{"fromAddress":%q,"toAddress":"0x1","chainId":%q,"txHash":%q}`, from, chain, tx)
	}
	good := `{"agentRegistry":"` + registry + `","agentId":1,"clientAddress":"eip155:1:` + buyer + `","createdAt":"x","value":90,"valueDecimals":0`
	for name, tt := range map[string]struct {
		file string
		want protocol.ReviewReason
	}{
		"a payment of the client":           {good + proof(buyer, "1", hash), ""},
		"a payment of the client's account": {good + proof("eip155:1:"+buyer, "1", hash), ""},
		"a payment that names nobody":       {good + proof("", "1", hash), ""},
		"a payment of somebody else":        {good + proof(owner1, "1", hash), protocol.PaymentNothing},
		"a payment on another chain":        {good + proof(buyer, "2", hash), protocol.PaymentChain},
		"a payment without a transaction":   {good + proof(buyer, "1", "0x12"), protocol.PaymentUnknown},
		"a receipt":                         {good + `,"orderReceipt":"a.b.c"`, ""},
		"nothing":                           {good, protocol.NoProof},
		"another registry":                  {strings.Replace(good, "aa\"", "ab\"", 1) + proof(buyer, "1", hash), protocol.FileDiffers},
		"another agent":                     {strings.Replace(good, `"agentId":1`, `"agentId":2`, 1) + proof(buyer, "1", hash), protocol.FileDiffers},
		"another client":                    {strings.Replace(good, buyer, owner1, 1) + proof(buyer, "1", hash), protocol.FileDiffers},
		"another value":                     {strings.Replace(good, `"value":90`, `"value":91`, 1) + proof(buyer, "1", hash), protocol.FileDiffers},
		"other decimals":                    {strings.Replace(good, `"valueDecimals":0`, `"valueDecimals":1`, 1) + proof(buyer, "1", hash), protocol.FileDiffers},
		"no decimals":                       {strings.Replace(good, `,"valueDecimals":0`, "", 1) + proof(buyer, "1", hash), protocol.MalformedFile},
		"no time":                           {strings.Replace(good, `"createdAt":"x",`, "", 1) + proof(buyer, "1", hash), protocol.MalformedFile},
	} {
		d := &desk{now: time.Now()}
		f := d.given()
		file := []byte(tt.file + "}")
		sum := erc8004.FeedbackHash(file)
		f.Doc.Value, f.Doc.Hash = "90", fmt.Sprintf("0x%x", sum)
		if readFile(&f, file); tt.want != "" {
			require.Equal(t, tt.want, f.Reason, name)
			require.Equal(t, storage.FeedbackUncounted, f.State, name)
			continue
		}
		require.Equal(t, storage.FeedbackWaiting, f.State, name)
		f = d.given()
		f.Doc.Value, f.Doc.Hash = "90", "0x00"
		readFile(&f, file)
		require.Equal(t, protocol.HashMismatch, f.Reason, name)
	}
}

func TestDecimalOf(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]struct {
		units    int64
		decimals int
	}{"2.5": {2_500_000, 6}, "0.001": {1, 3}, "12": {12, 0}, "1": {1000, 3}, "7": {7, -1}} {
		require.Equal(t, want, decimalOf(big.NewInt(in.units), in.decimals))
	}
}

// FuzzReadFile reads a stranger's file as it is on the chain.
func FuzzReadFile(f *testing.F) {
	f.Add([]byte(`{"agentRegistry":"eip155:1:0x00000000000000000000000000000000000000aa","agentId":1,"clientAddress":"0x3","createdAt":"x",`+
		`"value":90,"valueDecimals":0}`), "data:,a")
	f.Fuzz(func(t *testing.T, file []byte, uri string) {
		hash := erc8004.FeedbackHash(file)
		x := feedbackOf(erc8004.Feedback{Client: "0x3", Value: big.NewInt(90), Tag1: "starred", URI: "https://a.example/f", Hash: hash},
			storage.FeedbackAgent{Agent: "eip155:1:0x00000000000000000000000000000000000000aa:1"})
		readFile(&x, file)
		if x.State == storage.FeedbackWaiting {
			require.True(t, x.Doc.Read)
			require.True(t, x.Doc.Receipt != "" || x.Doc.PaidTx != "")
			if x.Doc.Receipt != "" {
				claimsOf(x.Doc.Receipt)
			}
		}
		dataOf(uri)
		replyText(uri)
	})
}
