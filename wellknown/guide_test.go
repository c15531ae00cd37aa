package wellknown

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

func TestGuide_NamesEveryOperationOfTheHTTPDoor(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	llms, skill := get(h, "/llms.txt"), get(h, "/SKILL.md")
	require.Equal(t, "text/plain; charset=utf-8", llms.Header().Get("Content-Type"))
	require.Equal(t, "text/markdown; charset=utf-8", skill.Header().Get("Content-Type"))
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP == 0 {
			continue
		}
		if op.For != protocol.Everybody { // owners' and operators' are told to them
			require.NotContains(t, llms.Body.String()+skill.Body.String(), op.HTTP.Path)
			continue
		}
		require.Contains(t, llms.Body.String(), "["+op.Name+"]("+op.HTTP.Path+")")
		require.Contains(t, skill.Body.String(), "`"+op.Name+"` | `"+op.HTTP.Method+" "+op.HTTP.Path+"`")
	}
	require.NotContains(t, skill.Body.String(), "/mcp/public", "that door is closed on this node")
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.HTTP) {
		if op.ReadOnly {
			for _, text := range []string{llms.Body.String(), skill.Body.String()} {
				says := strings.Contains(text, op.Summary+" Needs "+needs(*op)+".")
				require.Equal(t, op.Private(), says, "%s: what is someone's own is not open", op.Name)
			}
		}
		if op.Secret != "" {
			require.NotEmpty(t, secrets[op.Secret], op.Name)
		}
	}
}

func TestGuide_LLMsShape(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	lines := strings.Split(get(h, "/llms.txt").Body.String(), "\n")
	require.Equal(t, "# First node", lines[0])
	require.Regexp(t, "^> ", lines[2])
	item := regexp.MustCompile(`^- \[[^]]+\]\((https://n1\.example)?/[^)]*\)(: .+)?$`)
	section := false
	for _, l := range lines[3:] {
		if section = section || strings.HasPrefix(l, "## "); section && l != "" && !strings.HasPrefix(l, "## ") {
			require.Regexp(t, item, l)
		}
	}
	require.True(t, section)
}

// TestGuide_Parameters: an agent learns from the skill description what each read
// takes.
func TestGuide_Parameters(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	skill := get(h, "/SKILL.md").Body.String()
	rows := map[string]string{}
	for _, row := range strings.Split(skill, "\n") {
		if cells := strings.Split(row, " | "); len(cells) == 4 {
			rows[strings.Trim(cells[0], "| `")] = cells[2]
		}
	}
	for name, want := range map[string]string{
		"read_board": "`kind` (requirement, ability, challenge, resolution, offer, question, announcement), `tag`, `q`, `author`, `verifiedOnly`, " +
			"`resolved`, `root`, `sort` (relevance, new), `limit`, `after`",
		"get_challenge": "`purpose`* (contact, board, bid, meeting, report, join)",
		"list_merchants": "`q`, `category`, `city`, `near`, `radius`, `minPrice`, `maxPrice`, `currency`, `acceptsReturns`, `openNow`, " +
			"`local`, `sort` (relevance, new, near), `limit`, `after`",
		"get_agent_profile": "", "get_current_page": "`path`, `format` (data, markdown)", "check_conversation": "`limit`, `after`",
	} {
		require.Contains(t, rows, name)
		require.Equal(t, want, rows[name], name)
	}
	require.Contains(t, skill, "This node takes identities of `eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432`.")
	require.Contains(t, skill, "`Agent-Identity: eip155:<chainId>:<registry>:<agentId>`")
}

// The rules of agent skills: frontmatter of name and description, a short body.
func TestGuide_SkillShape(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	text := get(h, "/SKILL.md").Body.String()
	m := regexp.MustCompile(`\A---\nname: (.+)\ndescription: (.+)\n---\n\n# `).FindStringSubmatch(text)
	require.NotNil(t, m)
	require.Equal(t, "stoa", m[1])
	require.LessOrEqual(t, len(m[2]), 1024)
	require.NotContains(t, m[2], ": ", "plain YAML scalars hold no colon and space")
	require.Less(t, strings.Count(text, "\n"), 500)
}
