package protocol_test

import (
	"fmt"
	"time"

	"stoa/protocol"
)

// A paid bid gets the slot of the lowest live bid when it exceeds that by the board's step.
func ExampleBoardView_Settle() {
	now := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	board := protocol.BoardView{
		Terms: protocol.BoardTerms{Slots: 2},
		Live: []protocol.PlacedBid{
			{ID: "bid_a", Paise: 600_00, Slot: 1, FreeAt: now},
			{ID: "bid_b", Paise: 500_00, Slot: 2, FreeAt: now},
		},
	}
	for _, paise := range []int64{520_00, 550_00} {
		v := board.Settle(paise, 50_00, 0, now)
		fmt.Println(paise/100, v.Live, v.Slot)
	}
	// Output:
	// 520 false 0
	// 550 true 2
}

// Strangers fill half of a place; then the oldest of theirs gives way.
func ExampleShared_Admit() {
	requests := protocol.Shared{Most: 100}
	fmt.Println(requests.Admit(protocol.Caller{Standing: protocol.Proof}, protocol.Waiting{Strangers: 49}))
	fmt.Println(requests.Admit(protocol.Caller{Standing: protocol.Proof}, protocol.Waiting{Strangers: 50}))
	fmt.Println(requests.Admit(protocol.Caller{Standing: protocol.Owner}, protocol.Waiting{Strangers: 50}))
	// Output:
	// {0 0}
	// {0 1}
	// {0 0}
}

func ExampleMoneyDraft_Minor() {
	paise, fault := protocol.MoneyDraft{Currency: "INR", Amount: "120.50"}.Minor()
	fmt.Println(paise, fault)
	// Output: 12050 <nil>
}

func ExampleShorten() {
	fmt.Println(protocol.Shorten("Rag paper, any size", 10))
	// Output: Rag paper…
}
