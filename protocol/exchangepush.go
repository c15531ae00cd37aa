package protocol

import "strings"

// MaxExchangePushes is how many addresses an exchange tells of its changes.
const MaxExchangePushes = 5

// An ExchangePush is an address that is told of each change of an exchange.
type ExchangePush struct {
	ID          string `json:"id,omitempty" maxLength:"256" doc:"Chosen by the caller; the node makes one otherwise. One with the same id is replaced."`
	URL         string `json:"url" format:"uri" maxLength:"500" doc:"Public https address."`
	Token       string `json:"token,omitempty" maxLength:"1024" doc:"Sent in A2A-Notification-Token and X-A2A-Notification-Token."`
	Scheme      string `json:"scheme,omitempty" maxLength:"64" doc:"Of the header field Authorization."`
	Credentials string `json:"credentials,omitempty" maxLength:"2048" doc:"What follows the scheme. It is not shown again."`
	Legacy      bool   `json:"legacy,omitempty" doc:"It is told in the form of A2A 0.3."`
}

// Check refuses what cannot be sent to.
func (p ExchangePush) Check() []Fault { return p.faults("") }

func (p ExchangePush) faults(at string) (list []Fault) {
	if why := CallbackFault(p.URL, true); why != "" { // the rules of every node; the room knows whether this one is stricter
		list = append(list, Fault{at + "/url", "callback-address", why})
	}
	for name, s := range map[string]string{"token": p.Token, "credentials": p.Credentials} {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			list = append(list, Fault{at + "/" + name, "wrong-shape", "must be printable ASCII"})
		}
	}
	if strings.ContainsFunc(p.Scheme, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
		list = append(list, Fault{at + "/scheme", "wrong-shape", "must be the name of a scheme, such as Bearer"})
	}
	if p.Credentials != "" && p.Scheme == "" {
		list = append(list, Fault{at + "/scheme", "required", "is needed with credentials"})
	}
	return list
}

// A NewExchangePush is an address to add to an exchange.
type NewExchangePush struct {
	ExchangeInput
	Push ExchangePush `json:"push"`
}

// Check refuses what cannot be sent to.
func (n NewExchangePush) Check() []Fault { return n.Push.faults("/push") }

// An ExchangePushRef names one of the addresses of an exchange.
type ExchangePushRef struct {
	ExchangeInput
	PushID string `json:"pushId" minLength:"1" maxLength:"256"`
}

// ExchangePushes are the addresses of an exchange.
type ExchangePushes struct {
	Items []ExchangePush `json:"items"`
}

// Like those of exchange.go, these are reached by the methods of A2A.

var SetExchangePush = declare[NewExchangePush, ExchangePush](Operation{
	Name: "set_exchange_push", Title: "Be told of an exchange by A2A",
	Summary: "Each change of one of the caller's exchanges is sent to an address, signed by this node, until the exchange has ended.",
	Codes:   []Code{NotFound, Conflict},
	Example: NewExchangePush{
		ExchangeInput: ExchangeInput{Handle: "asha", ID: "task_01k9y3v6k8e5w9q2x4z7c1m0ad_1"},
		Push:          ExchangePush{ID: "p-1", URL: "https://agent.example/told", Token: "t-1"},
	},
})

var ListExchangePushes = declare[ExchangeInput, ExchangePushes](Operation{
	Name: "list_exchange_pushes", Title: "List who is told of an exchange by A2A",
	Summary:  "The addresses that are told of one of the caller's exchanges.",
	ReadOnly: true, NoStore: true, Codes: []Code{NotFound},
	Example: ExchangeInput{Handle: "asha", ID: "task_01k9y3v6k8e5w9q2x4z7c1m0ad_1"},
})

var DeleteExchangePush = declare[ExchangePushRef, None](Operation{
	Name: "delete_exchange_push", Title: "Be told no more of an exchange by A2A",
	Summary: "An address is told no more; without effect when there is none with that id.",
	Codes:   []Code{NotFound},
	Example: ExchangePushRef{ExchangeInput: ExchangeInput{Handle: "asha", ID: "task_01k9y3v6k8e5w9q2x4z7c1m0ad_1"}, PushID: "p-1"},
})
