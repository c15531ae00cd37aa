package httpsig_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"strings"

	"stoa/identity/httpsig"
)

// oneKey is a resolver that knows one key.
type oneKey struct{ httpsig.Key }

func (k oneKey) Resolve(context.Context, httpsig.KeyRequest) (httpsig.Resolved, error) {
	return httpsig.Resolved{Key: k.Key, Principal: "asha"}, nil
}

// An agent signs a request, and a node verifies it.
func ExampleSignRequest() {
	private := ed25519.NewKeyFromSeed([]byte("a seed of thirty-two bytes, for "))
	node, _ := httpsig.ParseTarget("https://n1.example")
	body := []byte(`{"kind":"offer","title":"Rag paper","body":"Any size."}`)

	r, _ := http.NewRequest("POST", "https://n1.example/api/public/board", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	if err := httpsig.SignRequest(r, node, body, httpsig.SignOptions{Key: private}); err != nil {
		fmt.Println(err)
		return
	}

	k, _ := httpsig.NewKey(private.Public())
	verifier := &httpsig.Verifier{Keys: oneKey{k}}
	message, _ := httpsig.FromRequest(r, node)
	result, err := verifier.Verify(context.Background(), &message, body, httpsig.WritePolicy())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Principal, result.BodyBound)

	_, err = verifier.Verify(context.Background(), &message, []byte(`{"title":"another"}`), httpsig.WritePolicy())
	fmt.Println(err != nil)
	// Output:
	// asha true
	// true
}
