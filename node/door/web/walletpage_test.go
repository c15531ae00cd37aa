package web_test

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A testWallet is a wallet of a browser: it signs with an account of the chain, and passes on what wallets pass on (EIP-1193).
type testWallet struct {
	t       *testing.T
	chain   *nodetest.EVM
	node    *rpc.Client
	mu      sync.Mutex // guards all below
	account int
	on      uint64 // the chain that is chosen
	refuse  string // method that its user does not allow
	asked   []string
}

type asked struct {
	Method string
	Params []json.RawMessage
}

func (w *testWallet) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var a asked
	if json.NewDecoder(r.Body).Decode(&a) != nil {
		out.WriteHeader(http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, a.Method)
	said := map[string]any{}
	if result, err := w.do(a); err == nil {
		said["result"] = result
	} else {
		said["error"] = err
	}
	json.NewEncoder(out).Encode(said)
}

type walletError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (w *testWallet) do(a asked) (any, *walletError) {
	if a.Method == w.refuse {
		return nil, &walletError{4001, "User rejected the request."}
	}
	switch a.Method {
	case "eth_requestAccounts":
		return []string{strings.ToLower(w.chain.Accounts[w.account].Address)}, nil
	case "eth_chainId":
		return hexutil.EncodeUint64(w.on), nil
	case "wallet_switchEthereumChain":
		w.on = w.chain.ChainID
		return nil, nil
	case "eth_sendTransaction":
		var call struct {
			To   common.Address
			Data hexutil.Bytes
		}
		require.NoError(w.t, json.Unmarshal(a.Params[0], &call))
		rec, err := w.chain.Registrar(w.account).Send(w.t.Context(), &call.To, call.Data)
		if err != nil {
			return nil, &walletError{-32000, err.Error()}
		}
		return rec.TxHash, nil
	case "eth_signTypedData_v4":
		text := must.JSON[string](a.Params[1])(w.t)
		sig := must.Get(crypto.Sign(typedHash(w.t, text), must.Get(erc8004.ParseWalletKey(w.chain.Accounts[w.account].PrivateKey))(w.t)))(w.t)
		sig[64] += 27
		return hexutil.Bytes(sig), nil
	}
	var params []any
	for _, p := range a.Params {
		params = append(params, p)
	}
	var result json.RawMessage
	if err := w.node.CallContext(w.t.Context(), &result, a.Method, params...); err != nil {
		return nil, &walletError{-32000, err.Error()}
	}
	return result, nil
}

// set changes what its user does from now on.
func (w *testWallet) set(account int, refuse string) (asked []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account, w.refuse = account, refuse
	return w.asked
}

// typedHash is the hash of typed data as a wallet computes it from its text (EIP-712), for members that are words or texts.
func typedHash(t *testing.T, text string) []byte {
	type member struct{ Name, Type string }
	var d struct {
		Types           map[string][]member
		PrimaryType     string
		Domain, Message map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	hash := func(name string, values map[string]string) []byte {
		var parts []string
		for _, m := range d.Types[name] {
			parts = append(parts, m.Type+" "+m.Name)
		}
		all := crypto.Keccak256([]byte(name + "(" + strings.Join(parts, ",") + ")"))
		for _, m := range d.Types[name] {
			value, ok := values[m.Name]
			require.True(t, ok, m.Name)
			word := make([]byte, 32)
			switch {
			case m.Type == "string":
				word = crypto.Keccak256([]byte(value))
			case m.Type == "address" || m.Type == "bytes32":
				word = common.LeftPadBytes(must.Get(hex.DecodeString(value[2:]))(t), 32)
			default:
				n, ok := new(big.Int).SetString(value, 10)
				require.True(t, ok, value)
				n.FillBytes(word)
			}
			all = append(all, word...)
		}
		return crypto.Keccak256(all)
	}
	return crypto.Keccak256([]byte{0x19, 0x01}, hash("EIP712Domain", d.Domain), hash(d.PrimaryType, d.Message))
}

// TestWalletPage: an owner registers an identity with the wallet of the browser, on a real chain: what it costs is shown before anything is
// sent, the node tells when it has seen the token and when the key is final, and the identity is connected.
func TestWalletPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	s := nodetest.NewStage(t, "", func(c *node.Config) { c.BaseURL = "http://localhost:" + port })
	wallet := &testWallet{t: t, chain: s.Chain, account: 3, on: 1, node: must.Get(rpc.Dial(s.Chain.RPC))(t)}
	t.Cleanup(wallet.node.Close)
	mux := http.NewServeMux()
	mux.Handle("/test-wallet", wallet)
	mux.Handle("/", s.Handler())
	server.Config.Handler = mux
	server.Start()
	t.Cleanup(server.Close)
	s.Work()
	s.Watch()
	s.PutProfile([]byte(`{"handle":"asha","name":"Asha","kind":"person"}`))
	_, link := s.OpenAccount("Asha", protocol.RoleOwner, "", "asha")

	b := nodetest.OpenBrowser(t, s.Base)
	b.Screen(390, 844)
	b.Load(chromedp.Navigate(link))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	require.Equal(t, 200, b.Open("/account/keys/register?handle=asha"))
	require.Contains(t, b.Text("main"), "Make a key first.")
	require.Equal(t, 200, b.Open("/account/keys?handle=asha"))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`form:has([value=make_key]) button`))))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`.steps a[href="/account/keys/register?handle=asha"]`))))

	// Without a wallet there is the call, and a QR code with a link for wallets that read them.
	require.Contains(t, b.Text("[data-lack]"), "This browser has no wallet")
	require.True(t, nodetest.Look[bool](b, `document.querySelector("[data-step=register]").hidden`))
	require.Contains(t, b.Text("main pre"), hex.EncodeToString([]byte(s.Base+"/.well-known/service-agents/")))
	require.Regexp(t, `^ethereum:0x[0-9a-fA-F]{40}@1337/register\?string=http%3A%2F%2Flocalhost`,
		nodetest.Look[string](b, `document.querySelector('a[href^="ethereum:"]').href`))
	require.True(t, nodetest.Look[bool](b, `!!document.querySelector(".qr svg")`))
	b.Picture("wallet-none")

	b.On(`window.ethereum = { request: asked => fetch("/test-wallet", { method: "POST", body: JSON.stringify({ ...asked, params: asked.params || [] }) })
		.then(said => said.json()).then(({ result, error }) => {
			if (error) throw Object.assign(new Error(error.message), { code: error.code });
			return result;
		}) };`)
	require.Equal(t, 200, b.Open("/account/keys/register?handle=asha"))
	press := func(step, do string) {
		t.Helper()
		nodetest.Look[bool](b, `document.querySelector('[data-step=`+step+`] [data-do=`+do+`]').click() ?? true`)
	}
	says := func(step, text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(b.Text("[data-says="+step+"]"), text) }, time.Minute, 50*time.Millisecond,
			"%s: %s", step, b.Text("main"))
	}
	require.True(t, nodetest.Look[bool](b, `document.querySelector("[data-lack]").hidden`))
	press("register", "ask")
	require.Eventually(t, func() bool { return strings.Contains(b.Text("[data-step=register] dl"), "of the chain's currency") }, time.Minute, 50*time.Millisecond,
		"%s", b.Text("main"))
	plan := b.Text("[data-step=register] dl")
	require.Contains(t, plan, strings.ToLower(s.Chain.Accounts[3].Address))
	require.Regexp(t, `(?s)Gas\s+[1-9][0-9]{5}`, plan)
	asked := wallet.set(3, "eth_sendTransaction")
	require.NotContains(t, asked, "eth_sendTransaction", "nothing is sent before the costs are shown")
	require.Contains(t, asked, "wallet_switchEthereumChain")
	b.Picture("wallet-plan")
	press("register", "send")
	says("register", "the wallet was told not to")
	wallet.set(3, "")
	press("register", "send")
	says("register", "Registered: token 0.")

	// Another account may not name the key; then the owner does, after a reload.
	require.Equal(t, 200, b.Load(chromedp.Reload()))
	wallet.set(4, "")
	press("keys", "ask")
	says("keys", "The token belongs to "+strings.ToLower(s.Chain.Accounts[3].Address))
	wallet.set(3, "")
	press("keys", "ask")
	require.Eventually(t, func() bool { return strings.Contains(b.Text("[data-step=keys] dl"), "of the chain's currency") }, time.Minute, 50*time.Millisecond,
		"%s", b.Text("main"))
	press("keys", "send")
	says("keys", "Published.")
	says("final", "The key is named.")
	b.Picture("wallet-waits")
	require.NotContains(t, b.Text("main"), "It is final.")
	s.Chain.Do("final")
	says("final", "It is final. Connect the identity now.")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`.steps form button`))), b.Text("main"))
	id := s.Chain.Registrar(3).ID(new(big.Int))
	require.Contains(t, b.Text("main"), id.String())
	p := nodetest.As[protocol.Profile](s.Ask("GET", "/api/public/agents/asha", ""))
	require.Equal(t, id.String(), *p.Identity.ERC8004)
	b.Picture("wallet-done")
}

// TestWalletPage_Refused: nobody asks for another's profile, a registry that the node does not read, or with a signature of another account.
func TestWalletPage_Refused(t *testing.T) {
	t.Parallel()
	s := nodetest.NewStage(t, "", nodetest.AtLocalhost)
	for _, handle := range []string{"asha", "bina"} {
		s.PutProfile([]byte(`{"handle":"` + handle + `","name":"Asha","kind":"person"}`))
	}
	pair := nodetest.NewPair(t)
	require.NoError(t, s.Admin().AddKey(t.Context(), "asha", pair, true))
	_, link := s.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	cookie := "stoa_session=" + s.SignIn(link)
	registry := "eip155:1337:" + strings.ToLower(s.Chain.Identity)
	account := strings.ToLower(s.Chain.Accounts[3].Address)
	send := func(handle, registry string, fields ...string) nodetest.Answer {
		form := map[string][]string{"registry": {registry}, "number": {"7"}, "account": {account}}
		for i := 0; i < len(fields); i += 2 {
			form[fields[i]] = []string{fields[i+1]}
		}
		return s.SendForm("/account/keys/register?handle="+handle, form, "Cookie", cookie)
	}
	state := send("asha", registry, "step", "state").Is(200)
	require.JSONEq(t, `{"owner":"","named":false,"final":false,"seconds":0}`, state.Body.String())
	require.Equal(t, "no-store", state.Header().Get("Cache-Control"))
	for _, c := range []struct {
		answer nodetest.Answer
		status int
	}{
		{send("bina", registry, "step", "state"), 404},
		{send("asha", "eip155:1:"+strings.ToLower(s.Chain.Identity), "step", "state"), 400},
		{send("asha", registry, "step", "state", "number", "07"), 400},
		{send("asha", registry, "step", "record", "account", "0x1"), 400},
		{send("asha", registry, "step", "call", "issued", "1700000000", "signature", "0x"+strings.Repeat("11", 65)), 400},
		{s.SendForm("/account/keys/register?handle=asha", map[string][]string{"registry": {registry}, "number": {"7"}, "step": {"state"}}), 401},
	} {
		require.Equal(t, c.status, c.answer.Code, "%s", c.answer.Body)
	}
}
