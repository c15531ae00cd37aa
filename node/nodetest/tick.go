package nodetest

import "time"

// Tick waits for the next millisecond of the clock: what is stored afterwards is later than what is stored now.
func Tick() {
	for at := time.Now().UnixMilli(); time.Now().UnixMilli() == at; {
		time.Sleep(time.Millisecond)
	}
}
