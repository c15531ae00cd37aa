package wellknown

import (
	"net/http"
	"time"

	"stoa/protocol"
)

// oauthServer describes the node as an authorization server (RFC 8414): code with PKCE for public clients, which are known by their metadata
// document or by registration.
func (w *WellKnown) oauthServer(*http.Request) (document, error) {
	return jsonDocument("application/json", time.Hour, map[string]any{
		"issuer":                                         w.base,
		"authorization_endpoint":                         w.base + protocol.OAuthAuthorizePath,
		"token_endpoint":                                 w.base + protocol.OAuthTokenPath,
		"registration_endpoint":                          w.base + protocol.OAuthRegisterPath,
		"revocation_endpoint":                            w.base + protocol.OAuthRevokePath,
		"scopes_supported":                               protocol.OAuthScopes,
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"authorization_response_iss_parameter_supported": true, // RFC 9207
		"client_id_metadata_document_supported":          true, // draft-ietf-oauth-client-id-metadata-document
		"service_documentation":                          w.base + "/SKILL.md",
	})
}

// oauthResource describes where tokens are good (RFC 9728): at a path of the node, or at the whole of it.
func (w *WellKnown) oauthResource(path string) maker {
	return func(*http.Request) (document, error) {
		return jsonDocument("application/json", time.Hour, map[string]any{
			"resource":                 w.base + path,
			"resource_name":            w.c.Name,
			"resource_documentation":   w.base + "/SKILL.md",
			"authorization_servers":    []string{w.base},
			"scopes_supported":         protocol.OAuthScopes,
			"bearer_methods_supported": []string{"header"},
		})
	}
}
