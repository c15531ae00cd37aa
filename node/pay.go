package node

import (
	"io"
	"net/http"
	"time"

	"stoa/node/door/httpapi"
	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/razorpay"
	"stoa/node/out/pay/sandbox"
	"stoa/node/out/pay/upi"
	"stoa/protocol"
)

// payProviders opens accounts at payment providers.
func (n *Node) payProviders(client *http.Client) func(money.Account) (pay.Provider, error) {
	return func(a money.Account) (pay.Provider, error) {
		switch a.Provider {
		case protocol.PayUPI:
			return upi.New(a.VPA, a.Name, time.Now)
		case protocol.PayRazorpay:
			return razorpay.New(razorpay.Account{KeyID: a.KeyID, KeySecret: a.KeySecret, WebhookSecrets: a.WebhookSecrets, Client: client})
		case protocol.PaySandbox:
			secret := ""
			if len(a.WebhookSecrets) > 0 {
				secret = a.WebhookSecrets[0]
			}
			return sandbox.New(sandbox.Options{Enabled: n.Config.Dev || n.Config.PaySandbox, Secret: secret, Page: n.Base + "/pay/sandbox"})
		}
		return nil, pay.ErrAccount
	}
}

// maxHook is the largest event of a payment provider, in bytes.
const maxHook = 1 << 20

// payHook takes the events of payment providers: checked and stored here, applied by a job, so that
// the provider has its answer at once.
func (n *Node) payHook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	if err != nil {
		err = protocol.Errorf(protocol.TooLarge, "an event has at most 1 MiB")
	} else {
		err = n.Money.Hook(r.Context(), r.PathValue("provider"), r.PathValue("hook"), r.Header, body)
	}
	if err != nil {
		httpapi.WriteProblem(w, n.Base, protocol.DialectNone, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}
