package key_test

import (
	"fmt"

	"stoa/identity/key"
)

// The key of RFC 8037 appendix A and its thumbprint (RFC 7638), which is how keys are named everywhere.
func ExampleThumbprint() {
	p, err := key.ParsePublic([]byte(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`))
	fmt.Println(key.Thumbprint(p.Key), err)
	// Output: kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k <nil>
}
