package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// OAuth lets programs act for owners (OAuth 2.1 as MCP asks for it: code with PKCE, public clients, rotating refresh tokens). What a program gets is
// an API token of the account, one row for as long as the owner allows it: the row's secret is the access token, and is exchanged for another by
// the refresh token. Nothing that a stranger begins is stored: the id of a registered client, a code and a refresh token are sealed texts that
// contain what they stand for.
type OAuth struct {
	Base    string // the issuer
	DB      *storage.DB
	Seal    *key.Sealer
	Private bool // metadata documents and their programs may be on this machine: development

	documents documents
}

// NewOAuth makes the room. client fetches metadata documents.
func NewOAuth(h hall.House, secret []byte, client *http.Client) (*OAuth, error) {
	seal, err := key.NewSealer(secret)
	return &OAuth{Base: h.Base, DB: h.DB, Seal: seal, Private: h.Private, documents: newDocuments(client)}, err
}

// Bind binds the operations.
func (o *OAuth) Bind(t *hall.Table) {
	hall.BindPlain(t, protocol.ReadClientRequest, o.Read)
	hall.BindPlain(t, protocol.GrantClient, o.Grant)
	hall.BindPlain(t, protocol.RegisterClient, o.Register)
	hall.BindPlain(t, protocol.ExchangeCode, o.Exchange)
	hall.Bind(t, protocol.EndClient, o.End)
}

// What is sealed, each for its purpose.
const (
	sealedClient  = "oauth-client"
	sealedCode    = "oauth-code"
	sealedRefresh = "oauth-refresh"
)

// A registration is the id of a registered client.
type registration struct {
	Name         string   `json:"n"`
	RedirectURIs []string `json:"r"`
	Until        int64    `json:"u"`
}

// A permit is a code: what an owner allowed a program.
type permit struct {
	ID       string           `json:"i"`
	Until    int64            `json:"u"`
	Account  string           `json:"a"`
	Handle   string           `json:"h,omitempty"`
	Name     string           `json:"n"`
	Client   string           `json:"c"` // by clientName
	Host     string           `json:"o,omitempty"`
	Redirect string           `json:"r"`
	Proof    string           `json:"p"` // code_challenge
	Resource string           `json:"e"`
	Scopes   []protocol.Scope `json:"s"`
	Ends     int64            `json:"x"`
}

// A renewal is a refresh token: the token that it renews, and how many of its secrets came before.
type renewal struct {
	Token      string `json:"t"`
	Generation int64  `json:"g"`
	Client     string `json:"c"`
}

// clientName is a short name of a client id, for what is bound to one.
func clientName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func seal[T any](o *OAuth, purpose, prefix string, v T) string {
	raw, _ := json.Marshal(v) // cannot fail: texts and numbers
	return prefix + base64.RawURLEncoding.EncodeToString(o.Seal.Seal(purpose, raw))
}

func unseal[T any](o *OAuth, purpose, prefix, text string) (v T, ok bool) {
	text, ok = strings.CutPrefix(text, prefix)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil {
		return v, false
	}
	raw, err := o.Seal.Open(purpose, sealed)
	return v, err == nil && json.Unmarshal(raw, &v) == nil
}

// Prefixes, so that what leaks is recognised.
const (
	codePrefix    = "stoa_code_"
	refreshPrefix = "stoa_refresh_"
	clientPrefix  = "stoa_client_"
)

// Register gives a program an id that contains what it says.
func (o *OAuth) Register(_ context.Context, _ protocol.Caller, in protocol.NewClient) (protocol.Client, error) {
	now := time.Now()
	r := registration{in.Name, in.RedirectURIs, now.Add(protocol.OAuthClientTime).Unix()}
	out := protocol.Client{ID: seal(o, sealedClient, clientPrefix, r), IssuedAt: now.Unix(), Name: in.Name, RedirectURIs: in.RedirectURIs,
		Auth: "none", GrantTypes: []string{"authorization_code", "refresh_token"}, Responses: []string{"code"}}
	if len(out.ID) > protocol.MaxClientID {
		return out, protocol.Invalid(protocol.Fault{Pointer: "/redirect_uris", Code: "too-long", Detail: "the addresses are too long together"})
	}
	return out, nil
}

// client is who asks: by its metadata document or its registration.
func (o *OAuth) client(ctx context.Context, id string) (d document, err error) {
	if strings.HasPrefix(id, "https://") || o.Private && strings.HasPrefix(id, "http://") {
		return o.documents.read(ctx, id)
	}
	r, ok := unseal[registration](o, sealedClient, clientPrefix, id)
	if !ok || time.Now().Unix() >= r.Until {
		return d, protocol.Errorf(protocol.NotFound, "this program is not known here, or registered more than 180 days ago; it has to register again")
	}
	return document{Name: r.Name, RedirectURIs: r.RedirectURIs}, nil
}

// Read says who asks an owner, and for what.
func (o *OAuth) Read(ctx context.Context, c protocol.Caller, in protocol.ClientRequest) (out protocol.Program, err error) {
	if !protocol.IsID(protocol.SessionID, c.Secret) { // else a token would be a way to a wider one
		return out, errNoBrowser
	}
	d, err := o.client(ctx, in.ClientID)
	if err != nil {
		return out, err
	}
	if !protocol.IsRedirectOf(in.RedirectURI, d.RedirectURIs) {
		return out, protocol.Errorf(protocol.Conflict, "the program asks to return to an address that is not one of its own; nothing was sent there")
	}
	if in.Resource = strings.TrimSuffix(in.Resource, "/"); in.Resource != "" && in.Resource != o.Base && in.Resource != o.Base+protocol.OwnerMCPPath {
		return out, protocol.Errorf(protocol.Conflict, "the program asks for a token of another place, %s", protocol.Clip(in.Resource, 100))
	}
	to, err := url.Parse(in.RedirectURI)
	if err != nil {
		return out, err
	}
	out = protocol.Program{Known: d.Host != "", Scopes: in.Scopes(), Refusal: in.Answer(o.Base, "error", "access_denied"), Untrusted: true}
	if to.Scheme == "https" {
		out.Returns = to.Host
	}
	out.Host = cmp.Or(d.Host, out.Returns)
	out.Name = cmp.Or(d.Name, out.Host, to.Scheme)
	return out, nil
}

// Grant makes the code by which a program gets its token.
func (o *OAuth) Grant(ctx context.Context, c protocol.Caller, in protocol.ClientGrant) (out protocol.ClientAnswer, err error) {
	if in.Handle != "" {
		if _, err := c.ActsAs(in.Handle); err != nil {
			return out, err
		}
	}
	asks, err := o.Read(ctx, c, in.ClientRequest)
	if err != nil {
		return out, err
	}
	for _, s := range in.Scopes {
		if !slices.Contains(asks.Scopes, s) {
			return out, protocol.Invalid(protocol.Fault{Pointer: "/scopes", Code: "not-asked", Detail: "the program does not ask for the scope " + string(s)})
		}
	}
	if err := o.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error { return roomForToken(ctx, tx, c.Account) }); err != nil {
		return out, err
	}
	now, id := time.Now(), make([]byte, 16)
	rand.Read(id)
	days := time.Duration(cmp.Or(in.ExpiresInDays, protocol.OAuthDays))
	out.Location = in.Answer(o.Base, "code", seal(o, sealedCode, codePrefix, permit{
		ID: base64.RawURLEncoding.EncodeToString(id), Until: now.Add(protocol.OAuthCodeLifetime).Unix(), Account: c.Account, Handle: in.Handle,
		Name: asks.Name, Client: clientName(in.ClientID), Host: asks.Host, Redirect: in.RedirectURI, Proof: in.Challenge,
		Resource: cmp.Or(strings.TrimSuffix(in.Resource, "/"), o.Base), Scopes: in.Scopes, Ends: now.Add(days * 24 * time.Hour).Unix(),
	}))
	return out, nil
}

// notGood refuses a code or refresh token.
func notGood(what string) error {
	return protocol.Errorf(protocol.Gone, "the %s is not good: it has expired, was used before, or belongs to another request; ask the owner again", what)
}

// Exchange gives a program a token for a code or a refresh token. What is used a second time ends the token that it gave (RFC 9700 §4.5, §4.14.2).
func (o *OAuth) Exchange(ctx context.Context, c protocol.Caller, in protocol.TokenRequest) (out protocol.TokenAnswer, err error) {
	if in.GrantType == "refresh_token" {
		return o.refresh(ctx, c, in)
	}
	p, ok := unseal[permit](o, sealedCode, codePrefix, in.Code)
	switch {
	case !ok || p.Redirect != in.RedirectURI || !in.Verifies(p.Proof) || time.Now().Unix() >= p.Until:
		return out, notGood("code")
	case p.Client != clientName(in.ClientID):
		return out, protocol.Errorf(protocol.NotFound, "the code was given to another program")
	case !same(in.Resource, p.Resource):
		return out, protocol.Errorf(protocol.Conflict, "the code is for %s", p.Resource)
	}
	secret, hash := session.New(session.Token)
	t := storage.Token{Hash: hash, Account: p.Account, Handle: p.Handle, Name: p.Name, Client: p.Host, Resource: p.Resource, Code: &p.ID,
		ExpiresAt: new(time.Unix(p.Ends, 0))}
	for _, s := range p.Scopes {
		t.Scopes = append(t.Scopes, string(s))
	}
	err = o.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		t.ID, t.CreatedAt, t.LapsesAt = protocol.NewID(protocol.TokenID, tx.Now), tx.Now, new(tx.Now.Add(protocol.OAuthTokenTime))
		if err := o.allowed(ctx, tx, p); err != nil {
			return err
		}
		if err := tx.Tokens().Insert(ctx, t); err != nil {
			return err
		}
		return tx.Audit(ctx, p.Account, "token create", t.ID, p.Name)
	})
	if errors.Is(err, storage.ErrExists) {
		return out, o.stolen(ctx, func(ctx context.Context, tx *storage.Tx) (*storage.Token, error) {
			return tx.Tokens().ByCode(ctx, p.ID)
		}, "code")
	}
	if err != nil {
		return out, err
	}
	return o.answer(t, secret, in.ClientID), nil
}

// allowed checks that the account still is, has the profile, and has room for a token.
func (o *OAuth) allowed(ctx context.Context, tx *storage.Tx, p permit) error {
	if _, err := tx.Accounts().ByID(ctx, p.Account); err != nil {
		return storage.IfMissing(err, notGood("code"))
	}
	handles, err := tx.Accounts().Handles(ctx, p.Account)
	if err != nil {
		return err
	}
	if p.Handle != "" && !slices.Contains(handles, p.Handle) {
		return notGood("code")
	}
	return roomForToken(ctx, tx, p.Account)
}

// refresh gives a token its next secret.
func (o *OAuth) refresh(ctx context.Context, c protocol.Caller, in protocol.TokenRequest) (out protocol.TokenAnswer, err error) {
	r, ok := unseal[renewal](o, sealedRefresh, refreshPrefix, in.RefreshToken)
	if !ok {
		return out, notGood("refresh token")
	}
	if r.Client != clientName(in.ClientID) {
		return out, protocol.Errorf(protocol.NotFound, "the refresh token was given to another program")
	}
	secret, hash := session.New(session.Token)
	var t *storage.Token
	reused := false
	err = o.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if t, err = tx.Tokens().ByID(ctx, r.Token); err != nil {
			return storage.IfMissing(err, notGood("refresh token"))
		}
		if t.RevokedAt != nil || t.ExpiresAt != nil && !t.ExpiresAt.After(tx.Now) {
			return notGood("refresh token")
		}
		if !same(in.Resource, t.Resource) {
			return protocol.Errorf(protocol.Conflict, "the refresh token is for %s", t.Resource)
		}
		err = tx.Tokens().Renew(ctx, t.ID, r.Generation, hash, tx.Now.Add(protocol.OAuthTokenTime))
		if reused = errors.Is(err, storage.ErrNotFound); reused {
			return nil
		}
		t.Generation, t.LapsesAt = r.Generation+1, new(tx.Now.Add(protocol.OAuthTokenTime))
		return err
	})
	if err != nil {
		return out, err
	}
	if reused {
		return out, o.stolen(ctx, func(ctx context.Context, tx *storage.Tx) (*storage.Token, error) { return t, nil }, "refresh token")
	}
	return o.answer(*t, secret, in.ClientID), nil
}

// stolen ends a token because what gave it was used twice: one of the two users is not who it was given to.
func (o *OAuth) stolen(ctx context.Context, find func(context.Context, *storage.Tx) (*storage.Token, error), what string) error {
	err := o.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		t, err := find(ctx, tx)
		if err != nil {
			return err
		}
		if err := tx.Tokens().Revoke(ctx, t.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, t.Account, "token revoke", t.ID, "its "+what+" was used twice")
	})
	return errors.Join(err, notGood(what))
}

// answer has a token with its secret, until it lapses.
func (o *OAuth) answer(t storage.Token, secret, client string) protocol.TokenAnswer {
	ends := *t.LapsesAt
	if t.ExpiresAt.Before(ends) {
		ends = *t.ExpiresAt
	}
	return protocol.TokenAnswer{AccessToken: secret, TokenType: "Bearer", ExpiresIn: max(1, int(time.Until(ends).Seconds())), Scope: strings.Join(t.Scopes, " "),
		RefreshToken: seal(o, sealedRefresh, refreshPrefix, renewal{t.ID, t.Generation, clientName(client)})}
}

// End ends a token that a program got, by its secret or by its refresh token.
func (o *OAuth) End(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.EndedToken) (none protocol.None, err error) {
	var t *storage.Token
	if r, ok := unseal[renewal](o, sealedRefresh, refreshPrefix, in.Token); ok {
		t, err = tx.Tokens().ByID(ctx, r.Token)
	} else if hash, ok := session.Hash(session.Token, in.Token); ok {
		t, err = tx.Tokens().ByHash(ctx, hash)
	}
	if t == nil || err != nil || t.Code == nil || t.RevokedAt != nil {
		return none, storage.IfMissing(err, nil)
	}
	if err := tx.Tokens().Revoke(ctx, t.ID); err != nil {
		return none, err
	}
	return none, tx.Audit(ctx, t.Account, "token revoke", t.ID, t.Name)
}

// same reports whether a resource that a program names again is the one that was allowed.
func same(again, allowed string) bool {
	again = strings.TrimSuffix(again, "/")
	return again == "" || again == allowed
}
