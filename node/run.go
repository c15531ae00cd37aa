package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"stoa/node/room/operate"
)

// drain is how long running requests may take after ctx has ended (contract §7:
// SIGTERM drains within 10 s).
const drain = 8 * time.Second

// Run serves until ctx ends, then refuses new requests, waits for running ones,
// releases leases and closes the database. It returns nil after an orderly end.
func (n *Node) Run(ctx context.Context) error {
	defer n.Close()
	defer n.sendTraces()()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group, failed := errgroup.WithContext(work)
	n.Feed.Hub.Open()
	server := newServer(n.handler)
	closePlain := n.serveHTTPS(failed, server, group.Go)
	var operator *http.Server
	if n.operatorListener != nil {
		operator = newServer(n.Config.operatorOnly(n.OperatorHandler()))
		operator.WriteTimeout = 2 * time.Minute // recording a profile takes long
		group.Go(func() error { return serve(operator, n.operatorListener) })
	}
	streaming, endStreams := context.WithCancel(failed)
	defer endStreams()
	group.Go(func() error { return n.Feed.Hub.Run(streaming) })
	group.Go(func() error { return n.Feed.Pulse.Run(streaming) })
	if n.backup != nil {
		group.Go(func() error { return n.backup.Run(streaming) })
	}
	defer context.AfterFunc(ctx, n.prober.Stop)() // the worker waits for it
	group.Go(func() error { return n.Worker.Run(failed) })
	if r := n.receiver(); r != nil {
		group.Go(func() error { return r.Serve(failed, n.lmtp) })
	}
	group.Go(func() error { return n.sightings.Run(failed) })
	group.Go(func() error { return n.Keys.Run(failed, n.log) })
	group.Go(func() error { return n.usage.Run(failed) })
	group.Go(func() error { return n.Meter.Run(failed) })
	group.Go(func() error { return n.federation.Run(failed) })
	group.Go(func() error { return n.directories.Run(failed) })
	counts := operate.Counts{"usage": n.agents.Counts.Renew, "explored": n.Directory.Explored.Renew, "statistics": n.Moderation.Numbers.Renew,
		"stocks": n.state.Renew, "words": operate.CountWords}
	group.Go(func() error { return counts.Run(failed, n.DB, n.log) })
	if n.Chain != nil {
		group.Go(func() error { return n.Chain.Reader.Run(failed) })
		group.Go(func() error { return n.Enrolments.Run(failed) })
		group.Go(func() error { return n.prover.Run(failed) })
	}
	group.Go(func() error {
		select {
		case <-ctx.Done():
		case <-failed.Done():
		}
		n.draining.Store(true)
		endStreams() // streams do not end before their clients do
		n.Contact.Hub.Close()
		n.followers.Close()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err := server.Shutdown(end)
		n.api.Wait(end)
		n.agentStreams.Wait(end)
		n.followers.Wait(end)
		if operator != nil {
			operator.Close()
		}
		closePlain()
		stopWork()
		if errors.Is(err, context.DeadlineExceeded) {
			n.log.Warn("some requests did not finish in time")
			return server.Close()
		}
		return err
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Close releases what New opened. It may be called twice.
func (n *Node) Close() error {
	errs := []error{n.sockets.close()}
	n.sockets = nil
	for _, l := range []net.Listener{n.listener, n.operatorListener, n.plain, n.lmtp} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if n.ucp != nil {
		n.ucp.Close()
	}
	if n.followers != nil {
		n.followers.Close()
	}
	if n.DB != nil {
		errs = append(errs, n.DB.Close())
		n.DB = nil
	}
	return errors.Join(errs...)
}

func newServer(h http.Handler) *http.Server {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: h, Protocols: &p, MaxHeaderBytes: 32 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 120 * time.Second,
	}
}

func serve(s *http.Server, l net.Listener) error { return orderly(s.Serve(l)) }

// orderly is nil for a server that was closed.
func orderly(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// owner names this process in leases, as host:pid:random.
func owner() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), randomName())
}
