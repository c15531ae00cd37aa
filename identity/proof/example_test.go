package proof_test

import (
	"context"
	"fmt"

	"stoa/identity/proof"
	"stoa/protocol/pow"
)

// A node issues a challenge, a writer solves it, and the node checks the solution that came with the write.
func Example() {
	issuer := proof.New(proof.Config{Master: []byte("a secret of all processes, 32 b."), Audience: "n1.example", Flat: new(0)})
	challenge := issuer.Issue("board", "network of the writer")
	solution, err := pow.Solve(context.Background(), challenge)
	if err != nil {
		fmt.Println(err)
		return
	}
	spend, _, err := issuer.Check(context.Background(), []byte(solution.Encode()), "board", "network of the writer")
	fmt.Println(spend.Key != [16]byte{}, err)
	_, _, err = issuer.Check(context.Background(), []byte(solution.Encode()), "contact", "network of the writer")
	fmt.Println(err != nil)
	// Output:
	// true <nil>
	// true
}
