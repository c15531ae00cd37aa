// Package passkey verifies passkeys (WebAuthn level 3, https://www.w3.org/TR/webauthn-3/) over
// github.com/go-webauthn/webauthn. Challenges, and the storage of passkeys, are the caller's.
package passkey

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"
)

// A Site is what passkeys of a node are for.
type Site struct {
	Domain string // the relying party's id: the host of the node's address
	web    *webauthn.WebAuthn
}

// ErrNoDomain is the error of an address that passkeys cannot be for.
var ErrNoDomain = errors.New("passkeys need a node whose address has a domain name and https, or localhost")

// New returns the site of a node at base, such as https://stoa.example. It must be one that browsers
// offer passkeys for: with a domain name, and https unless it is localhost. Other addresses are
// ErrNoDomain.
func New(base, name string) (*Site, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if _, err := netip.ParseAddr(host); err == nil || host == "" || u.Scheme != "https" && !local {
		return nil, ErrNoDomain
	}
	web, err := webauthn.New(&webauthn.Config{RPID: host, RPDisplayName: name, RPOrigins: []string{base}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDomain, err)
	}
	return &Site{host, web}, nil
}

// Algorithms are the COSE numbers of the signatures that are accepted, preferred first.
func Algorithms() []int {
	return []int{int(webauthncose.AlgES256), int(webauthncose.AlgEdDSA), int(webauthncose.AlgRS256)}
}

// A Credential is the public half of a passkey and its state.
type Credential struct {
	ID, Key                  []byte // Key is a COSE key
	Count                    uint32 // of its signatures, 0 when it does not count
	BackupEligible, BackedUp bool
	// Cloned: the counter did not go up, so there may be a copy of the passkey.
	Cloned bool
}

// A Registration is what a browser gives for a new passkey. Binary values are base64url without
// padding.
type Registration struct {
	ID, ClientData, Attestation string
}

// An Assertion is what a browser gives for a signature by a passkey, in the same form. User is the
// account's id as it was given at the registration.
type Assertion struct {
	ID, ClientData, AuthenticatorData, Signature, User string
}

// ErrInvalid is the error of a registration or assertion that does not verify. The text after it is
// for the log.
var ErrInvalid = errors.New("the passkey does not verify")

// Challenge returns the challenge that the browser says it had signed, not verified; "" for none.
func Challenge(clientData string) string {
	raw, err := decode(clientData)
	if err != nil {
		return ""
	}
	var c struct{ Challenge string }
	if json.Unmarshal(raw, &c) != nil {
		return ""
	}
	challenge, err := decode(c.Challenge)
	if err != nil {
		return ""
	}
	return string(challenge)
}

// Register verifies a new passkey of a user: made for this site and challenge, by an authenticator
// that verified the person. Who made the authenticator is not asked.
func (s *Site) Register(user, challenge string, r Registration) (Credential, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(document(r.ID, map[string]string{
		"clientDataJSON": r.ClientData, "attestationObject": r.Attestation,
	}))
	if err != nil {
		return Credential{}, invalid(err)
	}
	data := s.session(user, challenge)
	for _, alg := range Algorithms() {
		data.CredParams = append(data.CredParams, protocol.CredentialParameter{
			Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.COSEAlgorithmIdentifier(alg),
		})
	}
	c, err := s.web.CreateCredential(owner{id: user}, data, parsed)
	if err != nil {
		return Credential{}, invalid(err)
	}
	return Credential{ID: c.ID, Key: c.PublicKey, Count: c.Authenticator.SignCount, BackupEligible: c.Flags.BackupEligible, BackedUp: c.Flags.BackupState}, nil
}

// Verify verifies a signature by a passkey of a user: over the challenge, for this site, by an
// authenticator that verified the person. It returns the passkey's new state. That it was cloned is
// no error here.
func (s *Site) Verify(user, challenge string, c Credential, a Assertion) (Credential, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(document(a.ID, map[string]string{
		"clientDataJSON": a.ClientData, "authenticatorData": a.AuthenticatorData, "signature": a.Signature, "userHandle": a.User,
	}))
	if err != nil {
		return c, invalid(err)
	}
	stored := webauthn.Credential{
		ID: c.ID, PublicKey: c.Key, Flags: webauthn.CredentialFlags{BackupEligible: c.BackupEligible, BackupState: c.BackedUp},
		Authenticator: webauthn.Authenticator{SignCount: c.Count},
	}
	data := s.session("", challenge)
	find := func(_, handle []byte) (webauthn.User, error) { return owner{user, []webauthn.Credential{stored}}, nil }
	_, now, err := s.web.ValidatePasskeyLogin(find, data, parsed)
	if err != nil {
		return c, invalid(err)
	}
	c.Count, c.BackedUp, c.Cloned = now.Authenticator.SignCount, now.Flags.BackupState, now.Authenticator.CloneWarning
	return c, nil
}

func (s *Site) session(user, challenge string) webauthn.SessionData {
	return webauthn.SessionData{
		Challenge: encode([]byte(challenge)), RelyingPartyID: s.Domain, UserID: []byte(user), UserVerification: protocol.VerificationRequired,
	}
}

// document is a browser's answer in the form of the specification (RegistrationResponseJSON,
// AuthenticationResponseJSON).
func document(id string, response map[string]string) []byte {
	raw, _ := json.Marshal(map[string]any{ // texts alone: no error
		"id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": struct{}{},
	})
	return raw
}

func invalid(err error) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return fmt.Errorf("%w: %s %s", ErrInvalid, e.Details, e.DevInfo)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(s string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(s) }

// owner is the account that a passkey is for.
type owner struct {
	id          string
	credentials []webauthn.Credential
}

func (o owner) WebAuthnID() []byte                         { return []byte(o.id) }
func (o owner) WebAuthnName() string                       { return o.id }
func (o owner) WebAuthnDisplayName() string                { return o.id }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.credentials }
