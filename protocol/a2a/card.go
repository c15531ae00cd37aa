package a2a

import "encoding/json"

// Extensions that the node's cards declare. They contain only data, so clients are not required to
// support them.
const (
	ExtSignedRequests = "urn:stoa:a2a:signed-requests:v1" // how a request is signed
	ExtOperations     = "urn:stoa:a2a:operations:v1"      // a data part names an operation
	ExtContact        = "urn:stoa:a2a:contact:v1"         // kind of a message: in the message's metadata, under this name
	ExtProfile        = "urn:stoa:a2a:profile:v1"         // the profile that a card was made from
	ExtConfirm        = "urn:stoa:a2a:confirm:v1"         // the confirmId of a refusal, sent again with the same message: in its metadata, under this name
	ExtProof          = "urn:stoa:a2a:proof-of-work:v1"   // a solved challenge: in the message's metadata, under this name
)

// MaxCard is the longest card, in bytes: registries refuse longer ones.
const MaxCard = 10 << 10

// A Card is an agent card of A2A 1.0 (§4.4, §8), or with members of 0.3 beside. It contains no empty list, object or string, no
// null and no false, so that every reader derives the same canonical form.
type Card struct {
	Name                string                    `json:"name"`
	Description         string                    `json:"description"`
	SupportedInterfaces []Interface               `json:"supportedInterfaces"`
	Provider            *Provider                 `json:"provider,omitempty"`
	Version             string                    `json:"version"`
	DocumentationURL    string                    `json:"documentationUrl,omitempty"`
	Capabilities        Capabilities              `json:"capabilities"`
	SecuritySchemes     map[string]SecurityScheme `json:"securitySchemes,omitempty"`
	Security            []SecurityRequirement     `json:"securityRequirements,omitempty"`
	InputModes          []string                  `json:"defaultInputModes"`
	OutputModes         []string                  `json:"defaultOutputModes"`
	Skills              []Skill                   `json:"skills"`
	Signatures          []Signature               `json:"signatures,omitempty"`

	// Members of 0.3, in a combined card only.
	URL        string                `json:"url,omitempty"`
	Version03  string                `json:"protocolVersion,omitempty"`
	Transport  string                `json:"preferredTransport,omitempty"`
	Additional []Interface03         `json:"additionalInterfaces,omitempty"`
	Security03 []map[string][]string `json:"security,omitempty"`
	Extended03 bool                  `json:"supportsAuthenticatedExtendedCard,omitempty"`
}

// An Interface03 is an endpoint in the form of 0.3.
type Interface03 struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
}

// Combined returns the card for clients that name no version: with the members of 0.3 beside those of 1.0. It has no
// securityRequirements, since a2a-go 2.4.0 (2026), which names no version either, cannot read them in ProtoJSON's form; schemes and
// security say the same.
func (c Card) Combined() Card {
	first := c.SupportedInterfaces[0]
	c.URL, c.Transport, c.Version03 = first.URL, first.ProtocolBinding, Legacy+".0"
	c.Extended03 = c.Capabilities.Extended
	c.Additional = []Interface03{{first.URL, first.ProtocolBinding}}
	for _, need := range c.Security {
		or := map[string][]string{}
		for name, scopes := range need.Schemes {
			or[name] = scopes.List
		}
		c.Security03 = append(c.Security03, or)
	}
	schemes := map[string]SecurityScheme{}
	for name, s := range c.SecuritySchemes {
		switch {
		case s.APIKey != nil:
			s.Type, s.In, s.Name = "apiKey", s.APIKey.Location, s.APIKey.Name
		case s.HTTP != nil:
			s.Type, s.Scheme = "http", s.HTTP.Scheme
		}
		schemes[name] = s
	}
	c.SecuritySchemes, c.Security = schemes, nil
	return c
}

// An Interface is an endpoint of the agent.
type Interface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
}

// A Provider is the operator of the agent.
type Provider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

// Capabilities are the optional parts of the protocol.
type Capabilities struct {
	Streaming  bool        `json:"streaming,omitempty"`
	Push       bool        `json:"pushNotifications,omitempty"`
	Extended   bool        `json:"extendedAgentCard,omitempty"`
	Extensions []Extension `json:"extensions,omitempty"`
}

// An Extension is declared by its URI.
type Extension struct {
	URI         string         `json:"uri"`
	Description string         `json:"description"`
	Params      map[string]any `json:"params,omitempty"`
}

// A SecurityScheme is how a caller authenticates. A2A 1.0 has no scheme for RFC 9421; a header is
// the nearest. The members below are those of OpenAPI, for clients of 0.3; see [Card.Combined].
type SecurityScheme struct {
	APIKey *APIKeyScheme `json:"apiKeySecurityScheme,omitempty"`
	HTTP   *HTTPScheme   `json:"httpAuthSecurityScheme,omitempty"`

	Type   string `json:"type,omitempty"`
	In     string `json:"in,omitempty"`
	Name   string `json:"name,omitempty"`
	Scheme string `json:"scheme,omitempty"`
}

// An HTTPScheme is a scheme of the Authorization field.
type HTTPScheme struct {
	Description string `json:"description"`
	Scheme      string `json:"scheme"`
}

// An APIKeyScheme names the header that carries the credential.
type APIKeyScheme struct {
	Description string `json:"description"`
	Location    string `json:"location"`
	Name        string `json:"name"`
}

// A SecurityRequirement lists schemes that are all needed. Some readers drop a requirement with an
// empty list of scopes, so it contains one.
type SecurityRequirement struct {
	Schemes map[string]Scopes `json:"schemes"`
}

// Scopes are the scopes of one scheme.
type Scopes struct {
	List []string `json:"list"`
}

// A Skill is something that the agent does for others.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// A Signature is a JWS over the canonical card without its signatures (A2A 1.0
// §8.4).
type Signature struct {
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

// Payload returns the card without its signatures, as JSON: what is canonicalised and signed.
func (c Card) Payload() ([]byte, error) {
	c.Signatures = nil
	return json.Marshal(c)
}
