package erc8004_test

import (
	"fmt"

	"stoa/identity/erc8004"
)

func ExampleParseID() {
	id, err := erc8004.ParseID("eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22")
	fmt.Println(id.ChainID, id.AgentID, err)
	_, err = erc8004.ParseID("eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:022")
	fmt.Println(err != nil)
	// Output:
	// 1 22 <nil>
	// true
}
