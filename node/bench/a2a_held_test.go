package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// BenchmarkA2AHeld is the memory of 5,000 messages over A2A that wait for an answer, and of 5,000 streams of tasks, each on its own
// connection, of guests in 500 networks.
func BenchmarkA2AHeld(b *testing.B) {
	const held = 5000
	for _, method := range []string{"SendMessage", "SendStreamingMessage"} {
		b.Run(method, func(b *testing.B) {
			for b.Loop() {
				n := nodetest.Start(b, func(c *node.Config) { c.A2ACallers, c.A2AWait, c.MaxStreams = "any", 25, 4*held })
				n.PutOpen("asha", nil)
				client := benchClient(b, "hold", n.URL, method, fmt.Sprint(held))
				most := 0
				for end := time.Now().Add(2 * time.Minute); most < held && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
					most = max(most, n.Contact.Hub.Count())
				}
				debug.FreeOSMemory()
				with, still := resident(b), n.Contact.Hub.Count()
				b.ReportMetric(float64(most), "held")
				require.NoError(b, client.Process.Kill())
				require.Eventually(b, func() bool { return n.Contact.Hub.Count() == 0 }, time.Minute, 10*time.Millisecond)
				require.Eventually(b, func() bool { // what the messages left stays
					debug.FreeOSMemory()
					before := with - resident(b)
					b.ReportMetric(float64(before)/float64(max(still, 1)), "bytes/each")
					return before > 0
				}, time.Minute, time.Second)
			}
		})
	}
}

// holdTasks sends messages of guests, ten of a network, and holds their connections until the process is ended.
func holdTasks(t *testing.T, host, method string, count int) {
	var group sync.WaitGroup
	places := make(chan struct{}, 8) // so many begin at a time
	for i := range count {
		places <- struct{}{}
		group.Go(func() {
			conn := must.Get((&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, byte(i/10/256), byte(i/10%256))}}).Dial("tcp", host))(t)
			in := bufio.NewReaderSize(conn, 4<<10)
			must.Get(io.WriteString(conn, "GET /api/public/pow?purpose=contact HTTP/1.1\r\nHost: "+host+"\r\n\r\n"))(t)
			res := must.Get(http.ReadResponse(in, nil))(t)
			var challenge pow.Challenge
			require.NoError(t, json.NewDecoder(res.Body).Decode(&challenge))
			io.Copy(io.Discard, res.Body)
			solved := must.Get(pow.Solve(context.Background(), challenge))(t)
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi %d"}]}}}`, method, i)
			must.Get(fmt.Fprintf(conn, "POST /a2a/asha HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nProof-Of-Work: %s\r\nContent-Length: %d\r\n\r\n%s",
				host, solved.Encode(), len(body), body))(t)
			if strings.HasPrefix(method, "SendStr") {
				require.Contains(t, must.Get(in.ReadString('\n'))(t), "200")
			}
			<-places
			io.CopyBuffer(io.Discard, struct{ io.Reader }{in}, make([]byte, 512))
		})
	}
	group.Wait()
}
