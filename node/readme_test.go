package node

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// subjects are the words by which the README's list of what works names each subject of the declared operations: the part of a
// path behind /api/public/ or /api/owner/, or the first one.
var subjects = map[string]string{
	"about": "Discovery", "site-map": "Discovery", "page": "Discovery", "ard": "Discovery",
	"agents": "Directory", "people": "Directory", "profile": "Directory", "capabilities": "Directory", "needs": "Directory",
	"merchants": "Catalog", "merchant": "Catalog", "items": "Catalog",
	"board": "Board", "posts": "Board", "feed": "Feed", "since": "Feed",
	"threads": "Conversations", "blocked-writers": "Conversations", "callbacks": "Conversations",
	"attention": "Attention boards", "bids": "Attention boards", "bid-link": "Attention boards", "payment": "Attention boards",
	"payments": "Attention boards", "money": "Attention boards", "payments.csv": "Attention boards",
	"payment-account": "Attention boards", "refunds": "Attention boards",
	"meetings": "Meetings", "meeting-link": "Meetings", "meeting-decision": "Meetings", "meeting-feed": "Meetings", "meeting-settings": "Meetings",
	"turned-away":    "Meetings",
	"calendars":      "Meetings",
	"order-receipts": "Receipts and reviews",
	"account":        "Accounts", "session": "Accounts", "sessions": "Accounts", "sign-in": "Accounts", "passkeys": "Accounts", "recovery-codes": "Accounts",
	"tokens": "Accounts", "notify": "Accounts",
	"keys": "Identity", "identity": "Identity", "pow": "Identity",
	"export": "Moving", "import": "Moving",
	"moderation-log": "Moderation", "operator": "Moderation", "ucp": "UCP",
}

// The README's list of what works names every subject that operations are declared for, and the list of what does not exist names
// none of them.
func TestReadme_Status(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, status, found := strings.Cut(string(raw), "## Status and limits\n")
	require.True(t, found)
	works, missing, found := strings.Cut(status, "Does not exist yet:")
	require.True(t, found)
	missing, _, _ = strings.Cut(missing, "\n\n")
	declared := map[string]bool{"ucp": len(protocol.UCPVersions) > 0}
	for _, op := range protocol.Operations() {
		parts := strings.Split(strings.TrimPrefix(op.HTTP.Path, "/"), "/")
		switch {
		case op.HTTP.Path == "" || op.Local:
			continue
		case strings.HasPrefix(op.HTTP.Path, "/api/operator/"):
			parts = []string{"operator"}
		case strings.HasPrefix(op.HTTP.Path, "/api/"):
			parts = parts[2:]
		}
		declared[parts[0]] = true
		require.NotEmpty(t, subjects[parts[0]], "%s: which line of the README's list of what works is about %q? Add it to subjects", op.Name, parts[0])
	}
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		require.True(t, declared[subject], "no operation is about %q any more", subject)
		name := subjects[subject]
		require.Contains(t, works, "- **"+name+"**", "README.md, Status: what works")
		require.NotContains(t, strings.ToLower(missing), strings.ToLower(name), "README.md, Status: it exists")
	}
	for line := range strings.Lines(works) {
		if name, _, bold := strings.Cut(strings.TrimPrefix(line, "- **"), "**"); bold && strings.HasPrefix(line, "- **") {
			require.Contains(t, slices.Collect(maps.Values(subjects)), name, "README.md, Status: no operation is declared for it")
		}
	}
}
