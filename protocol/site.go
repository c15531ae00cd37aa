package protocol

import "stoa/protocol/pow"

// A SiteEntry is one public page, endpoint or file.
type SiteEntry struct {
	Path    string `json:"path"`
	Kind    string `json:"kind" enum:"page,endpoint,file"`
	Method  string `json:"method" example:"GET"`
	Purpose string `json:"purpose"`
}

// A SiteMap is every public page, endpoint and file.
type SiteMap struct {
	Items []SiteEntry `json:"items"`
}

// A PowInput asks for a proof-of-work challenge.
type PowInput struct {
	Purpose string `json:"purpose" enum:"contact,board,bid,meeting,report" doc:"What the proof will pay for; contact is good for every anonymous write."`
}

var AboutService = declare[None, string](Operation{
	Name: "about_service", Title: "About this service",
	Summary: "What the service is and every way to use it, as plain text.",
	HTTP:    Route{"GET", "/api/public/about", 200}, Doors: Everywhere, ReadOnly: true,
	Media: "text/plain; charset=utf-8", Example: None{},
})

var GetSiteMap = declare[None, SiteMap](Operation{
	Name: "site_map", Title: "Site map",
	Summary: "Every public page and endpoint, with what each is for.",
	HTTP:    Route{"GET", "/api/public/site-map", 200}, Doors: Everywhere, ReadOnly: true,
	Example: None{},
})

var GetChallenge = declare[PowInput, pow.Challenge](Operation{
	Name: "get_challenge", Title: "Get a proof-of-work challenge",
	Summary:     "A puzzle that, solved, lets anybody write without account or key.",
	Description: "ALTCHA version 2. Try n = 0, 1, 2, … until PBKDF2-HMAC-SHA-256(nonce || n as 4 bytes big-endian, salt, cost, keyLength) in lower-case hex starts with keyPrefix. Send the solution as the member pow of the body, or base64 in the Proof-Of-Work header.",
	HTTP:        Route{"GET", "/api/public/pow", 200}, Doors: HTTP | MCP | InPage, ReadOnly: true, NoStore: true,
	Example: PowInput{Purpose: "contact"},
})
