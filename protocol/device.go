package protocol

import (
	"crypto/ecdh"
	"encoding/base64"
	"time"
)

// Bounds of devices. That of a visitor ends when the browser forgets what opens the page, at the latest.
const (
	MaxDevices        = 20 // of an account; a further one ends the oldest
	MaxVisitorDevices = 3  // of a thread, bid or meeting request; a further one ends the oldest
	VisitorDeviceFor  = 120 * 24 * time.Hour
)

// A NewDevice is a browser's subscription to a push service.
type NewDevice struct {
	Of       string `json:"of,omitempty" maxLength:"60" doc:"Id of a thread, bid or meeting request whose changes it is told. Left out: the notices of the account's profiles."`
	Token    string `json:"token,omitempty" maxLength:"200" doc:"What opens it: the read token or status token."`
	Former   string `json:"former,omitempty" maxLength:"1000" doc:"Endpoint that this one replaces, wherever it is used; without of."`
	Endpoint string `json:"endpoint" minLength:"1" maxLength:"1000" doc:"Address of the subscription at its push service (RFC 8030)."`
	P256dh   string `json:"p256dh" pattern:"^[A-Za-z0-9_-]{87}$" doc:"Its public key (RFC 8291), base64url."`
	Auth     string `json:"auth" pattern:"^[A-Za-z0-9_-]{22}$" doc:"Its authentication secret, base64url."`
	Language string `json:"language,omitempty" enum:"en,hi" default:"en" doc:"Of the messages."`
	Program  string `json:"program,omitempty" maxLength:"300" doc:"The browser's name for itself."`
}

// Check refuses keys that are no point of P-256 and no 16 bytes.
func (n NewDevice) Check() (faults []Fault) {
	if p, a := n.Keys(); len(a) != 16 {
		faults = append(faults, Fault{"/auth", "not-a-key", "must be 16 bytes as base64url"})
	} else if _, err := ecdh.P256().NewPublicKey(p); err != nil {
		faults = append(faults, Fault{"/p256dh", "not-a-key", "must be an uncompressed point of P-256 as base64url"})
	}
	return faults
}

// Keys returns the keys as bytes, nil for one that is not base64url.
func (n NewDevice) Keys() (p256dh, auth []byte) {
	p256dh, _ = base64.RawURLEncoding.DecodeString(n.P256dh)
	auth, _ = base64.RawURLEncoding.DecodeString(n.Auth)
	return p256dh, auth
}

// A Device is a browser that is sent notices by Web Push, without what reaches it.
type Device struct {
	ID        string    `json:"id" pattern:"^dev_"`
	Program   string    `json:"program" doc:"The browser's name for itself."`
	Service   string    `json:"service" doc:"Host of its push service."`
	Language  string    `json:"language" enum:"en,hi"`
	CreatedAt time.Time `json:"createdAt"`
}

// Devices are those of an account, newest first.
type Devices struct {
	Items []Device `json:"items"`
	Key   string   `json:"key" doc:"Public key of the node for subscriptions (RFC 8292), base64url."`
}

var AddDevice = declare[NewDevice, Device](Operation{
	Name: "add_device", Title: "Notify a device",
	Summary: "Sends notices to a browser by Web Push, for the account or for one thread, bid or meeting request.",
	HTTP:    Route{"POST", "/api/owner/devices", 201}, Doors: HTTP, For: Owners, Secret: "token", Visitor: true,
	Codes: []Code{NotFound, Unauthorized, Forbidden},
	Example: NewDevice{Of: "thr_01k9y3v6k8e5w9q2x4z7c1m0ad", Token: "stoa_read_q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6",
		Endpoint: "https://push.example/v1/abc", Auth: "BTBZMqHH6r4Tts7J_aSIgg",
		P256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"},
})

var ListDevices = declare[None, Devices](Operation{
	Name: "list_devices", Title: "List devices",
	Summary: "The browsers that are sent the notices of the account's profiles.",
	HTTP:    Route{"GET", "/api/owner/devices", 200}, Doors: HTTP, For: Owners, Access: Session, Scope: ScopeNotify, ReadOnly: true, Codes: []Code{Forbidden},
	Example: None{},
})

// A DeviceRef names a device.
type DeviceRef struct {
	ID string `json:"id" pattern:"^dev_[0-9a-z]{26}$"`
}

var DeleteDevice = declare[DeviceRef, None](Operation{
	Name: "delete_device", Title: "Remove a device",
	Summary: "Sends no more notices to a browser.",
	HTTP:    Route{"DELETE", "/api/owner/devices/{id}", 204}, Doors: HTTP, For: Owners, Access: Session, Scope: ScopeNotify, Inward: true,
	Codes: []Code{Forbidden, NotFound}, Example: DeviceRef{"dev_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})
