package wellknown

import (
	"net/http"
	"time"
)

const nodeInfoSchema = "http://nodeinfo.diaspora.software/ns/schema/"

// nodeInfoLinks lists the versions (NodeInfo protocol §2) and the node's actor
// (FEP-2677).
func (w *WellKnown) nodeInfoLinks(*http.Request) (document, error) {
	return jsonDocument("application/json", time.Hour, map[string]any{"links": []link{
		{Rel: nodeInfoSchema + "2.1", Href: w.base + "/nodeinfo/2.1"},
		{Rel: nodeInfoSchema + "2.0", Href: w.base + "/nodeinfo/2.0"},
		{Rel: "https://www.w3.org/ns/activitystreams#Application", Href: w.base + "/ap/node"},
	}})
}

// nodeInfo is a NodeInfo document. It is never used to negotiate features (FEP-0151). Users are profiles; registrations are
// open where everybody may join, at once or after an approval.
type nodeInfo struct {
	Version           string   `json:"version"`
	Software          software `json:"software"`
	Protocols         []string `json:"protocols"`
	Services          services `json:"services"`
	OpenRegistrations bool     `json:"openRegistrations"`
	Usage             usage    `json:"usage"`
	Metadata          metadata `json:"metadata"`
}

type software struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository,omitempty"` // since 2.1
}

type services struct {
	Inbound  []string `json:"inbound"`
	Outbound []string `json:"outbound"`
}

type usage struct {
	Users         users `json:"users"`
	LocalPosts    int   `json:"localPosts"`
	LocalComments int   `json:"localComments"`
}

type users struct {
	Total          int `json:"total"`
	ActiveMonth    int `json:"activeMonth"`
	ActiveHalfyear int `json:"activeHalfyear"`
}

type metadata struct {
	NodeName        string            `json:"nodeName"`
	NodeDescription string            `json:"nodeDescription"`
	Federation      map[string]bool   `json:"federation"`
	Interfaces      map[string]string `json:"interfaces"`
	Agents          census            `json:"agents"`
	Texts           map[string]string `json:"texts,omitempty"` // of the operator: contact, terms, privacy
}

// A census counts the profiles that are alive or have an identity.
type census struct {
	Listed    int `json:"listed"`
	Answering int `json:"answering"`
	OnChain   int `json:"onChain"`
}

func (w *WellKnown) nodeInfo20(r *http.Request) (document, error) { return w.nodeInfo(r, "2.0") }
func (w *WellKnown) nodeInfo21(r *http.Request) (document, error) { return w.nodeInfo(r, "2.1") }

func (w *WellKnown) nodeInfo(r *http.Request, version string) (document, error) {
	u, err := w.c.Directory.Usage(r.Context())
	if err != nil {
		return document{}, err
	}
	texts := map[string]string{}
	for _, page := range w.c.Texts {
		texts[page] = w.base + "/" + page
	}
	n := nodeInfo{
		Version:   version,
		Software:  software{Name: "stoa", Version: w.c.Version},
		Protocols: []string{"activitypub"},
		Services:  services{Inbound: []string{}, Outbound: []string{}},

		OpenRegistrations: w.c.Open,
		Usage:             usage{users{u.Agents, u.ActiveMonth, u.ActiveHalfyear}, u.Posts - u.Replies, u.Replies},
		Metadata: metadata{
			NodeName: w.c.Name, NodeDescription: w.c.Description,
			Federation: map[string]bool{"enabled": true},
			Interfaces: map[string]string{"openapi": w.base + "/openapi.json", "skill": w.base + "/SKILL.md"},
			Agents:     census{u.Listed, u.Answering, u.Verified}, Texts: texts,
		},
	}
	if version == "2.1" {
		n.Software.Repository = w.c.Repository
	}
	return jsonDocument(`application/json; profile="`+nodeInfoSchema+version+`#"`, 5*time.Minute, n)
}
