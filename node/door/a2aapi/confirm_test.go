package a2aapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/a2a"
)

// TestA2A_Confirm: whom the endpoint does not serve gets a link, and the same message is sent when a person has pressed; by text, and by an
// operation; at the default, and where guests are served.
func TestA2A_Confirm(t *testing.T) {
	t.Parallel()
	for _, callers := range []string{"identity", "any"} {
		nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
			h := nodetest.New(t, change, served(callers))
			h.PutOpen("asha", nil)
			for purpose, part := range map[string]string{
				"contact": hi,
				"board":   `{"data":{"operation":"post_to_board","input":{"kind":"question","title":"Who?","body":"Who makes paper?"}}}`,
			} {
				send := func(id, extra string) nodetest.A2AAnswer {
					return plain(h, "/a2a/asha", "SendMessage", said(id, part, extra), "A2A-Version", "1.0")
				}
				refused := send("m-1", "")
				require.NotNil(t, refused.Error, "%s", refused.Raw)
				var link nodetest.A2ADatum
				for _, detail := range refused.Error.Data {
					if detail.ConfirmURL != "" {
						link = detail
					}
				}
				require.Equal(t, "waiting", link.Confirm, "%s %s: %s", callers, purpose, refused.Raw)
				metadata := fmt.Sprintf(`,"metadata":{%q:%q}`, a2a.ExtConfirm, link.ConfirmID)
				require.NotNil(t, send("m-2", metadata).Error, "nobody has pressed")
				h.SendForm(strings.TrimPrefix(link.ConfirmURL, h.Base), url.Values{"do": {"yes"}, "altcha": {h.Proof(purpose)}}).Is(200)
				done := send("m-3", metadata)
				require.Nil(t, done.Error, "%s %s: %s", callers, purpose, done.Raw)
				require.NotEmpty(t, done.Result)
			}
		})
	}
}
