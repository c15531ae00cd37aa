package a2a

import "encoding/json"

// Extensions that cards of this software declare. They hold data only, so that
// none of them is required of a client.
const (
	ExtSignedRequests = "urn:stoa:a2a:signed-requests:v1" // how a request is signed
	ExtOperations     = "urn:stoa:a2a:operations:v1"      // a data part names an operation
	ExtContact        = "urn:stoa:a2a:contact:v1"         // kind of a message: metadata of the message under this name
	ExtProfile        = "urn:stoa:a2a:profile:v1"         // the profile that a card was made from
)

// MaxCard is how long a card may be, in bytes: registries refuse longer ones.
const MaxCard = 10 << 10

// A Card is an agent card of A2A 1.0 (§4.4, §8). A card made here has no empty
// list, object or string, no null and no false, so that every reader's canonical
// form is the same.
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
}

// An Interface is where and how the agent is reached.
type Interface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
}

// A Provider is who runs the agent.
type Provider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

// Capabilities are the optional parts of the protocol. Neither streams nor push
// notifications are offered, which is said by their absence.
type Capabilities struct {
	Extensions []Extension `json:"extensions,omitempty"`
}

// An Extension is declared by its URI.
type Extension struct {
	URI         string         `json:"uri"`
	Description string         `json:"description"`
	Params      map[string]any `json:"params,omitempty"`
}

// A SecurityScheme is how a caller shows who it is. The union of A2A 1.0 has no
// member for RFC 9421; a header is the nearest.
type SecurityScheme struct {
	APIKey *APIKeyScheme `json:"apiKeySecurityScheme,omitempty"`
}

// An APIKeyScheme names the header that carries the credential.
type APIKeyScheme struct {
	Description string `json:"description"`
	Location    string `json:"location"`
	Name        string `json:"name"`
}

// A SecurityRequirement lists schemes of which all are needed. An empty list of
// scopes makes some readers drop the requirement, so it holds one.
type SecurityRequirement struct {
	Schemes map[string]Scopes `json:"schemes"`
}

// Scopes are of one scheme.
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

// Payload is the card without its signatures, as JSON: what is made canonical
// and signed.
func (c Card) Payload() ([]byte, error) {
	c.Signatures = nil
	return json.Marshal(c)
}
