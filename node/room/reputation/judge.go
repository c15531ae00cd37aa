package reputation

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/storage"
)

// maxKeptURI is how much of an address is stored and shown. A file in a longer data: URI is read when the
// event is, and not stored.
const maxKeptURI = 2048

// feedbackOf makes what is stored of an event: not counted with its reason where the event alone says so,
// otherwise waiting.
func feedbackOf(e erc8004.Feedback, shop storage.FeedbackAgent) storage.Feedback {
	f := storage.Feedback{
		ID: protocol.NewID(protocol.ReviewID, e.At), Agent: shop.Agent, Client: e.Client, Index: e.Index, Block: e.Block,
		Place: storage.FeedbackPlace(e.Block, e.LogIndex), At: e.At, State: storage.FeedbackWaiting, Reason: protocol.ReviewIsChecked,
		Doc: storage.FeedbackDoc{Value: e.Value.String(), Decimals: e.Decimals, URI: protocol.Clip(strings.ToValidUTF8(e.URI, "\uFFFD"), maxKeptURI),
			Hash: "0x" + hex.EncodeToString(e.Hash[:]), Tx: e.Tx, Place: e.Place, LogIndex: e.LogIndex, Source: e.Source},
	}
	rating, ok := erc8004.Rating(e.Value, e.Decimals)
	f.Rating = rating
	switch {
	case !ok:
		refuse(&f, protocol.OutOfRange)
		f.Rating = -1
	case e.Tag1 != erc8004.Starred:
		refuse(&f, protocol.NotStarred)
	case e.Client == shop.Owner || e.Client == shop.Wallet:
		refuse(&f, protocol.SelfReview)
	case e.URI == "" || e.Hash == [32]byte{}:
		refuse(&f, protocol.NoFile)
	case !strings.HasPrefix(e.URI, "data:") && (!strings.HasPrefix(e.URI, "https://") && !strings.HasPrefix(e.URI, "http://") || len(e.URI) > maxKeptURI):
		refuse(&f, protocol.UnreadableURI)
	}
	return f
}

// refuse ends the check of feedback with a reason why it does not count.
func refuse(f *storage.Feedback, why protocol.ReviewReason) {
	f.State, f.Reason, f.NextAt = storage.FeedbackUncounted, why, nil
}

// dataOf decodes a data: URI (RFC 2397) of at most [protocol.MaxReviewFile] bytes.
func dataOf(uri string) ([]byte, protocol.ReviewReason) {
	head, body, ok := strings.Cut(strings.TrimPrefix(uri, "data:"), ",")
	if !ok {
		return nil, protocol.UnreadableURI
	}
	if base64.StdEncoding.DecodedLen(len(body)) > protocol.MaxReviewFile+3 && len(body) > 3*protocol.MaxReviewFile {
		return nil, protocol.FileTooLarge
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, protocol.UnreadableURI
	}
	raw := []byte(text)
	if strings.HasSuffix(head, ";base64") {
		raw, err = base64.StdEncoding.DecodeString(text)
		if err != nil {
			raw, err = base64.RawStdEncoding.DecodeString(text)
		}
	}
	switch {
	case err != nil:
		return nil, protocol.UnreadableURI
	case len(raw) > protocol.MaxReviewFile:
		return nil, protocol.FileTooLarge
	}
	return raw, ""
}

// A feedbackFile is the off-chain file of ERC-8004 "Off-Chain Feedback File Structure", and the member
// orderReceipt. Other members are ignored; comment and text are a reviewer's words.
type feedbackFile struct {
	AgentRegistry string           `json:"agentRegistry"`
	AgentID       json.RawMessage  `json:"agentId"`
	ClientAddress string           `json:"clientAddress"`
	CreatedAt     string           `json:"createdAt"`
	Value         json.RawMessage  `json:"value"`
	ValueDecimals *json.RawMessage `json:"valueDecimals"`
	OrderReceipt  string           `json:"orderReceipt"`
	Proof         *struct {
		From    string          `json:"fromAddress"`
		To      string          `json:"toAddress"`
		ChainID json.RawMessage `json:"chainId"`
		Tx      string          `json:"txHash"`
	} `json:"proofOfPayment"`
	Comment string `json:"comment"`
	Text    string `json:"text"`
}

// readFile compares a file with its event and takes from it what proves an order. It refuses what does
// not match.
func readFile(f *storage.Feedback, file []byte) {
	hash := erc8004.FeedbackHash(file)
	if "0x"+hex.EncodeToString(hash[:]) != f.Doc.Hash {
		refuse(f, protocol.HashMismatch)
		return
	}
	var in feedbackFile
	if err := strictjson.DecodeLoose(file, &in); err != nil || in.CreatedAt == "" || len(in.OrderReceipt) > protocol.MaxReceiptToken {
		refuse(f, protocol.MalformedFile)
		return
	}
	id, err := erc8004.ParseID(f.Agent)
	if err != nil || in.ValueDecimals == nil {
		refuse(f, protocol.MalformedFile)
		return
	}
	registry := f.Agent[:strings.LastIndexByte(f.Agent, ':')]
	account := accountOf(id.ChainID, f.Client)
	if !strings.EqualFold(in.AgentRegistry, registry) || plain(in.AgentID) != id.AgentID.String() || plain(in.Value) != f.Doc.Value ||
		plain(*in.ValueDecimals) != strconv.Itoa(int(f.Doc.Decimals)) ||
		!strings.EqualFold(in.ClientAddress, account) && !strings.EqualFold(in.ClientAddress, f.Client) {
		refuse(f, protocol.FileDiffers)
		return
	}
	f.Doc.Read = true
	text := in.Comment
	if text == "" {
		text = in.Text
	}
	f.Doc.Text = clipRunes(protocol.CleanText(text), protocol.MaxReviewText)
	switch {
	case in.OrderReceipt != "":
		f.Doc.Receipt = in.OrderReceipt
	case in.Proof == nil:
		refuse(f, protocol.NoProof)
	case plain(in.Proof.ChainID) != strconv.FormatUint(id.ChainID, 10):
		refuse(f, protocol.PaymentChain)
	case in.Proof.From != "" && !strings.EqualFold(in.Proof.From, f.Client) && !strings.EqualFold(in.Proof.From, account):
		refuse(f, protocol.PaymentNothing)
	case !isHash(in.Proof.Tx):
		refuse(f, protocol.PaymentUnknown)
	default:
		f.Doc.PaidTx = strings.ToLower(in.Proof.Tx)
	}
}

// accountOf is a CAIP-10 account id in lower case.
func accountOf(chainID uint64, address string) string {
	return fmt.Sprintf("eip155:%d:%s", chainID, address)
}

// plain is a JSON number or string without its quotes.
func plain(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }

func isHash(s string) bool {
	_, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	return err == nil && len(s) == 66 && strings.HasPrefix(s, "0x")
}

func clipRunes(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// claims reads a receipt without its signature, to find the node that is said to have signed it.
func claimsOf(token string) (c protocol.OrderReceiptClaims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	return c, err == nil && strictjson.DecodeLoose(raw, &c) == nil
}

// readReceipt verifies the receipt of feedback with the keys of the node that issued it.
func readReceipt(f *storage.Feedback, keys key.Set, now time.Time) {
	payload, _, err := keys.VerifyCompact(f.Doc.Receipt, protocol.OrderReceiptType, protocol.MaxReceiptToken, now)
	var c protocol.OrderReceiptClaims
	if err != nil || strictjson.DecodeLoose(payload, &c) != nil || !protocol.IsID(protocol.ReceiptID, c.ID) || c.Order == "" {
		refuse(f, protocol.ReceiptInvalid)
		return
	}
	takeReceipt(f, c)
}

// takeReceipt takes the order from the claims of a receipt whose signature is valid.
func takeReceipt(f *storage.Feedback, c protocol.OrderReceiptClaims) {
	id, err := erc8004.ParseID(f.Agent)
	switch {
	case err != nil || c.Agent != f.Agent:
		refuse(f, protocol.ReceiptAgent)
		return
	case c.Client != accountOf(id.ChainID, f.Client):
		refuse(f, protocol.ReceiptClient)
		return
	}
	f.Doc.Order = &protocol.ReviewedOrder{Issuer: c.Issuer, Receipt: c.ID, Total: protocol.Money{Currency: c.Currency, Amount: c.Amount},
		PaidAt: time.Unix(c.PaidAt, 0).UTC()}
	useUp(f, c)
}

// useUp names what feedback uses up of an order.
func useUp(f *storage.Feedback, c protocol.OrderReceiptClaims) {
	f.Doc.Names = []string{orderName(c), receiptName(c)}
	f.Proof = f.Doc.Names[0]
}

func orderName(c protocol.OrderReceiptClaims) string {
	return strings.Join([]string{"order", c.Issuer, c.Agent, c.Order}, " ")
}

// receiptName is what feedback uses up of a receipt.
func receiptName(c protocol.OrderReceiptClaims) string { return "receipt " + c.Issuer + " " + c.ID }

// readPayment judges what a transaction paid. again is true when the chain may have it later.
func readPayment(f *storage.Feedback, p erc8004.Payment, chainID uint64) (again bool) {
	switch {
	case !p.Found:
		return true
	case p.Failed:
		refuse(f, protocol.PaymentFailed)
	case p.Block > f.Block || p.Block == f.Block && p.Place >= f.Doc.Place:
		refuse(f, protocol.PaymentLate)
	case p.Amount == nil && p.ToOther:
		refuse(f, protocol.PaymentPayee)
	case p.Amount == nil || p.Wallet == "" || p.Wallet == f.Client:
		refuse(f, protocol.PaymentNothing)
	default:
		paid := &protocol.ReviewPayment{Chain: fmt.Sprintf("eip155:%d", chainID), Transaction: f.Doc.PaidTx, Units: p.Amount.String(),
			Wallet: p.Wallet, WalletNow: p.WalletNow}
		decimals := 18
		if p.Token != "" {
			paid.Token, decimals = &p.Token, p.Decimals
		}
		paid.Amount = decimalOf(p.Amount, decimals)
		f.Doc.Payment, f.Doc.PaidPlace = paid, storage.FeedbackPlace(p.Block, 0)
		f.Doc.Names = []string{"payment " + paid.Chain + " " + paid.Transaction}
		f.Proof = f.Doc.Names[0]
	}
	return false
}

// decimalOf is units/10^decimals without zeros at its end; the units where decimals are not known.
func decimalOf(units *big.Int, decimals int) string {
	s := units.String()
	if decimals <= 0 {
		return s
	}
	if len(s) <= decimals {
		s = strings.Repeat("0", decimals-len(s)+1) + s
	}
	return strings.TrimSuffix(strings.TrimRight(s[:len(s)-decimals]+"."+s[len(s)-decimals:], "0"), ".")
}

// replyText is the text of an answer that is in its address.
func replyText(uri string) string {
	if !strings.HasPrefix(uri, "data:") {
		return ""
	}
	raw, why := dataOf(uri)
	head, _, _ := strings.Cut(strings.TrimPrefix(uri, "data:"), ",")
	media, _, _ := mime.ParseMediaType(strings.TrimSuffix(head, ";base64"))
	switch {
	case why != "":
		return ""
	case media == "text/plain" || media == "":
		return clipRunes(protocol.CleanText(string(raw)), protocol.MaxReviewText)
	}
	var in struct {
		Text string `json:"text"`
	}
	if media == "application/json" && strictjson.DecodeLoose(raw, &in) == nil {
		return clipRunes(protocol.CleanText(in.Text), protocol.MaxReviewText)
	}
	return ""
}
