package protocol

import "time"

// What an owner does with an attention board and with the account that its bids are paid to.

// An OwnAttentionBoard is an attention board as its owner reads it.
type OwnAttentionBoard struct {
	AttentionBoard
	Open       bool       `json:"open" doc:"False: the board is closed, or was never written."`
	ClaimHours int        `json:"claimHours" minimum:"0" doc:"For how many hours a payment that the payer reports waits for you to confirm it."`
	Wanted     bool       `json:"wanted" doc:"What you last wrote as accepting. The board takes bids when there is a payment account too."`
	UpdatedAt  *time.Time `json:"updatedAt" doc:"When it was last written; null for never."`
}

var GetOwnAttentionBoard = declare[OwnInput, OwnAttentionBoard](Operation{
	Name: "get_own_attention_board", Title: "Get your attention board",
	Summary: "The attention board of a profile of yours with its settings.",
	HTTP:    Route{"GET", "/api/owner/attention", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})

var PutAttentionBoard = declare[AttentionDraft, OwnAttentionBoard](Operation{
	Name: "put_attention_board", Title: "Write your attention board",
	Summary: "Opens the attention board of a person's profile of yours, or replaces its settings: what is left out gets its default.",
	Description: "Bids that were made before keep the rules under which they were made. " +
		"Slots in use stay. To take bids, the board also needs a payment account (put_payment_account).",
	HTTP: Route{"PUT", "/api/owner/attention", 200}, For: Owners, Scope: ScopeAttention, Replaces: GetOwnAttentionBoard.Operation,
	Codes:   []Code{Forbidden, NotFound, Conflict},
	Example: AttentionDraft{Owned: Owned{"asha"}, Rules: "Offers of yarn. I answer in three days.", Floor: "500", Slots: 3},
})

// PayName is the name of a payment provider.
type PayName string

const (
	PayUPI      PayName = "upi"
	PayRazorpay PayName = "razorpay"
	PaySandbox  PayName = "sandbox" // no money moves; only where the operator allows it
)

// MaxWebhookSecrets is how many secrets of a provider's webhook are accepted at once: after a
// change, repeats of old events are still signed with the old one.
const MaxWebhookSecrets = 4

// A PaymentDraft is the account that bids are paid to, as its owner writes it.
type PaymentDraft struct {
	Owned
	Provider       PayName  `json:"provider" enum:"upi,razorpay,sandbox" doc:"upi: to your VPA, which you confirm by hand. razorpay: by links of your own Razorpay account. sandbox: no money moves; only on a node for tests."`
	VPA            string   `json:"vpa,omitempty" maxLength:"255" doc:"With upi: your UPI address, such as asha@okbank."`
	PayeeName      string   `json:"payeeName,omitempty" visible:"true" line:"true" maxLength:"80" doc:"Name of the payee that payers see. Default: the name of the profile."`
	KeyID          string   `json:"keyId,omitempty" line:"true" maxLength:"80" doc:"With razorpay: id of your API key."`
	KeySecret      string   `json:"keySecret,omitempty" line:"true" maxLength:"200" doc:"With razorpay: secret of your API key. Never shown again. Left out: the stored one stays."`
	WebhookSecrets []string `json:"webhookSecrets,omitempty" maxItems:"4" doc:"With razorpay: secrets of your webhook, the newest first. Never shown again. Left out: the stored ones stay."`
	LegalName      string   `json:"legalName,omitempty" line:"true" maxLength:"120" doc:"For receipts."`
	Address        string   `json:"address,omitempty" maxLength:"400" doc:"For receipts."`
	GSTIN          string   `json:"gstin,omitempty" maxLength:"15" doc:"For receipts: your GST number."`
	GSTPercent     Decimal  `json:"gstPercent,omitempty" decimal:"true" doc:"For receipts: the rate of GST that your prices include. Left out: receipts show no tax."`
}

// Check refuses what does not belong together.
func (d PaymentDraft) Check() []Fault {
	var faults []Fault
	only := func(at, value string, of PayName) {
		if value != "" && d.Provider != of {
			faults = append(faults, Fault{at, "not-allowed", "belongs to the provider " + string(of)})
		}
	}
	only("/vpa", d.VPA, PayUPI)
	only("/keyId", d.KeyID, PayRazorpay)
	only("/keySecret", d.KeySecret, PayRazorpay)
	for _, s := range d.WebhookSecrets {
		only("/webhookSecrets", "given", PayRazorpay)
		if len(s) < 8 || len(s) > 200 {
			faults = append(faults, Fault{"/webhookSecrets", "wrong-shape", "each has 8 to 200 bytes"})
		}
	}
	switch {
	case d.Provider == PayUPI && d.VPA == "":
		faults = append(faults, Fault{"/vpa", "required", "is required with the provider upi"})
	case d.VPA != "" && !IsVPA(d.VPA):
		faults = append(faults, Fault{"/vpa", "wrong-shape", "is not a UPI address such as asha@okbank"})
	case d.Provider == PayRazorpay && d.KeyID == "":
		faults = append(faults, Fault{"/keyId", "required", "is required with the provider razorpay"})
	}
	if d.GSTIN != "" && !IsGSTIN(d.GSTIN) {
		faults = append(faults, Fault{"/gstin", "wrong-shape", "is not a GST identification number"})
	}
	if d.GSTPercent != "" {
		if rate, fault := d.GSTPercent.Paise(); fault != nil || rate > 100_00 {
			faults = append(faults, Fault{"/gstPercent", "out-of-range", "is a percentage with at most two decimals"})
		}
	}
	return faults
}

// A PaymentAccount is the account that bids are paid to, without its secrets.
type PaymentAccount struct {
	Handle         string    `json:"handle"`
	Provider       *PayName  `json:"provider" enum:"upi,razorpay,sandbox" nullable:"true" doc:"Null while there is no account."`
	VPA            string    `json:"vpa"`
	PayeeName      string    `json:"payeeName"`
	KeyID          string    `json:"keyId"`
	HasKeySecret   bool      `json:"hasKeySecret" doc:"A key secret is stored, encrypted."`
	WebhookSecrets int       `json:"webhookSecrets" minimum:"0" doc:"How many webhook secrets are stored, encrypted."`
	WebhookURL     *string   `json:"webhookUrl" doc:"Where the provider's webhook must point; null for a provider without one."`
	LegalName      string    `json:"legalName"`
	Address        string    `json:"address"`
	GSTIN          string    `json:"gstin"`
	GSTPercent     string    `json:"gstPercent" doc:"Empty: receipts show no tax."`
	Providers      []PayName `json:"providers" enum:"upi,razorpay,sandbox" doc:"Providers that this node offers."`
	Untrusted      bool      `json:"untrusted_content" doc:"Always true."`
}

var GetPaymentAccount = declare[OwnInput, PaymentAccount](Operation{
	Name: "get_payment_account", Title: "Get your payment account",
	Summary: "Where the bids on the attention board of a profile of yours are paid to. Secrets are never shown.",
	HTTP:    Route{"GET", "/api/owner/payment-account", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})

var PutPaymentAccount = declare[PaymentDraft, PaymentAccount](Operation{
	Name: "put_payment_account", Title: "Write your payment account",
	Summary: "Sets where the bids on your attention board are paid to: always to you directly, never to the node.",
	Description: "Bids that were made before are paid, and refunded, by the account that was set when they were made. " +
		"Secrets are stored encrypted and never shown again.",
	HTTP: Route{"PUT", "/api/owner/payment-account", 200}, For: Owners, Scope: ScopeAttention, Inward: true, Replaces: GetPaymentAccount.Operation,
	Codes:   []Code{Forbidden, NotFound, Conflict},
	Example: PaymentDraft{Owned: Owned{"asha"}, Provider: PayUPI, VPA: "asha@okbank"},
})

var DeletePaymentAccount = declare[OwnInput, None](Operation{
	Name: "delete_payment_account", Title: "Delete your payment account",
	Summary: "The attention board takes no more bids. Secrets are deleted once no bid needs them for a refund.",
	HTTP:    Route{"DELETE", "/api/owner/payment-account", 204}, For: Owners, Scope: ScopeAttention, Inward: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})
