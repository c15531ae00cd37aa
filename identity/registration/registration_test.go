package registration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/protocol/must"
)

const registry = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"

func TestParse(t *testing.T) {
	t.Parallel()
	const one = `{"agentId":22,"agentRegistry":"eip155:8453:` + registry + `"}`
	id := must.Get(erc8004.ParseID("eip155:8453:" + registry + ":22"))(t)
	for _, c := range []struct {
		name, doc string
		names     bool
		hosts     []string
		err       string
	}{
		{"as in the standard", `{"type":"` + Type + `","registrations":[` + one + `]}`, true, nil, ""},
		{"without a type", `{"registrations":[` + one + `]}`, true, nil, ""},
		{"a number as text, an address in lower case", `{"registrations":[{"agentId":"22","agentRegistry":"eip155:8453:` + strings.ToLower(registry) + `"}]}`,
			true, nil, ""},
		{"another chain", `{"registrations":[{"agentId":22,"agentRegistry":"eip155:1:` + registry + `"}]}`, false, nil, ""},
		{"another namespace", `{"registrations":[{"agentId":22,"agentRegistry":"solana:1:x"}]}`, false, nil, ""},
		{"a number in another form", `{"registrations":[{"agentId":2.2e1,"agentRegistry":"eip155:8453:` + registry + `"}]}`, false, nil, ""},
		{"nothing", `{}`, false, nil, ""},
		{"another type", `{"type":"https://x.example/","registrations":[` + one + `]}`, false, nil, "type is not"},
		{"no JSON", `<html>`, false, nil, "acceptable JSON"},
		{"a member twice", `{"registrations":[],"registrations":[` + one + `]}`, false, nil, "acceptable JSON"},
		{"too many", `{"registrations":[` + strings.Repeat(one+",", MaxEntries) + one + `]}`, false, nil, "at most 64"},
		{"another shape", `{"registrations":{}}`, false, nil, "shape"},
		{"sites", `{"registrations":[` + one + `],"services":[{"name":"WEB","endpoint":"https://A.example/x"},{"name":"web","endpoint":"https://a.example/y"},
			{"name":"MCP","endpoint":"https://mcp.example"},{"name":"web","endpoint":"http://b.example"},{"name":"web","endpoint":"https://u:p@c.example"}]}`,
			true, []string{"a.example"}, ""},
		{"sites of a former form", `{"registrations":[` + one + `],"endpoints":[{"type":"web","value":"https://a.example/"}]}`, true, []string{"a.example"}, ""},
	} {
		d, err := Parse([]byte(c.doc))
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.names, d.Names(id), c.name)
		require.Equal(t, c.hosts, d.Hosts, c.name)
	}
	d := must.Get(ParseDomain([]byte(`{"registrations":[` + strings.Repeat(one+",", MaxDomainEntries-1) + one + `]}`)))(t)
	require.True(t, d.Names(id))
	require.Len(t, d.Registrations, 1)
}

func TestInline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uri, want string
		ok        bool
		err       string
	}{
		{"data:application/json;base64,eyJhIjoxfQ==", `{"a":1}`, true, ""},
		{"data:application/json;base64,eyJhIjoxfQ", `{"a":1}`, true, ""},
		{"DATA:application/json;charset=utf-8;base64,eyJhIjoxfQ==", `{"a":1}`, true, ""},
		{"data:application/json,%7B%22a%22%3A1%7D", `{"a":1}`, true, ""},
		{"data:text/html,x", "", true, "application/json"},
		{"data:application/json", "", true, "application/json"},
		{"data:application/json;base64,***", "", true, "illegal"},
		{"data:application/json," + strings.Repeat("x", MaxInline), "", true, "bytes"},
		{"https://a.example/data:", "", false, ""},
		{"", "", false, ""},
	} {
		raw, ok, err := Inline(c.uri)
		require.Equal(t, c.ok, ok, c.uri)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, string(raw))
	}
}
