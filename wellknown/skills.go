package wellknown

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// Where agents look for the skills of a host (Agent Skills discovery 0.2.0).
const (
	skillsPath = "/.well-known/agent-skills/index.json"
	skillPath  = "/.well-known/agent-skills/stoa/SKILL.md"
)

// skills is the index of the host's one skill. The digest is of the bytes that skillPath serves.
func (w *WellKnown) skills(*http.Request) (document, error) {
	type skill struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description"`
		URL         string `json:"url"`
		Digest      string `json:"digest"`
	}
	text := w.guide["/SKILL.md"]
	sum := sha256.Sum256(text)
	_, rest, _ := strings.Cut(string(text), "\ndescription: ") // of its front matter
	description, _, _ := strings.Cut(rest, "\n")
	return jsonDocument("application/json", time.Hour, struct {
		Schema string  `json:"$schema"`
		Skills []skill `json:"skills"`
	}{"https://schemas.agentskills.io/discovery/0.2.0/schema.json", []skill{{
		"stoa", "skill-md", description, skillPath, "sha256:" + hex.EncodeToString(sum[:]),
	}}})
}
