package node

import (
	"context"
	"net/url"
	"time"

	"stoa/identity/registration"
	"stoa/node/out/outbound"
	"stoa/node/room/credential"
	"stoa/node/work/liveness"
	"stoa/storage"
)

// documents makes what reads the registration documents of identities.
func (n *Node) documents(base string) *credential.Documents {
	o := outboundOptions(n.Config, n.Base)
	o.MaxBody = registration.MaxDomainDocument
	d := &credential.Documents{DB: n.DB, Chain: n.Chain, Client: n.signer.Client(outbound.New(o)), Host: base, Log: n.log}
	if n.Config.Dev {
		d.Pause = devPause
	}
	return d
}

const (
	probeTimeout = 10 * time.Second
	probeBody    = 64 << 20        // announced length; only the beginning is read
	devPause     = 2 * time.Second // between runs on a node for development
)

// liveness makes the prober, which asks the listed endpoints, and the sightings, which
// record the agents that sent requests. The prober can be switched off.
func (n *Node) liveness(ctx context.Context) error {
	base, err := url.Parse(n.Base)
	if err != nil {
		return err
	}
	c := n.Config
	agent := "stoa/" + c.Version + " (+" + n.Base + "/; asks whether listed endpoints answer)"
	n.sightings = &liveness.Sightings{DB: n.DB, Log: n.log}
	n.prober = &liveness.Prober{
		DB: n.DB, Agent: agent, Self: base.Host, Observe: n.metrics.probed, Log: n.log,
		Client: n.signer.Client(outbound.New(outbound.Options{AllowPrivate: c.private(), UserAgent: agent, Timeout: probeTimeout, MaxBody: probeBody})),
	}
	if c.Dev {
		n.prober.Pause = devPause
	}
	documents := n.documents(base.Host)
	n.Worker.Handle(storage.DocumentsJob, documents.Job)
	if err := n.DB.Write(ctx, documents.Enqueue); err != nil {
		return err
	}
	if n.Chain != nil {
		n.prober.Identity = func(ctx context.Context, identity, thumbprint string) error {
			_, err := n.Chain.Grant(ctx, identity, thumbprint)
			return err
		}
	}
	if c.NoProbes {
		n.Worker.Handle(storage.ProbeJob, n.prober.Rest)
		return nil
	}
	n.Worker.Handle(storage.ProbeJob, n.prober.Job)
	return n.DB.Write(ctx, liveness.Enqueue)
}
