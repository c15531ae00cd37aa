package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
)

type adminPeerCmd struct {
	Follow   peerFollowCmd `cmd:"" help:"Follow another node's board."`
	Unfollow peerURL       `cmd:"" op:"unfollow_peer" help:"Stop following a board."`
	Retry    peerURL       `cmd:"" op:"retry_peer" help:"Try a followed board, or an inbox, now instead of at the next time."`
	Reread   peerReread    `cmd:"" op:"reread_peer" help:"Read a followed log from its beginning: this ends a conflict."`
	Conflict peerURL       `cmd:"" op:"read_log_conflict" help:"Print both documents that show that a followed log contradicts itself."`
	List     peerListCmd   `cmd:"" help:"The boards that the node follows, the inboxes that it delivers to, and their state."`
	Policy   peerPolicy    `cmd:"" op:"set_peer_policy" help:"Set how a host is treated: reject, silence, allow, trusted, or none."`
	Import   peerImportCmd `cmd:"" help:"Set the policies of a list of domain blocks (CSV) of Mastodon; none becomes milder."`
	Export   peerExportCmd `cmd:"" help:"Print the refused and silenced hosts as such a list."`
}

type peerFollowCmd struct {
	URL string `arg:"" help:"Address of the node, such as https://n1.example, or of its board."`
}

func (c *peerFollowCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		if _, err := node.Do(ctx, a, protocol.FollowPeer, protocol.PeerAddress{URL: c.URL}); err != nil {
			return err
		}
		fmt.Fprintln(w.stderr, "the running node follows within a second, or retries for a day; see: stoa admin peer list")
		return nil
	})
}

type peerURL struct {
	act
	URL string `arg:"" json:"url" help:"The board or inbox, as peer list shows it."`
}

type peerReread struct {
	peerURL
	Forget bool `json:"forget,omitempty" help:"Also delete the posts of that node since the conflict that it does not have any more."`
}

type peerPolicy struct {
	act
	Host   string `arg:"" json:"host" help:"Host; this includes its subdomains. * is every host without a policy that is not followed."`
	Policy string `arg:"" json:"policy" enum:"reject,silence,allow,trusted,none" help:"reject, silence, allow, trusted or none."`
	Note   string `json:"note,omitempty" help:"Why, for the log."`
}

type peerListCmd struct{}

func (c *peerListCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		var peers protocol.PeersView
		var lines [][]string
		for in := (protocol.PeersQuery{Paging: protocol.Paging{Limit: protocol.MaxLimit}}); ; in.After = *peers.Next {
			var err error
			if peers, err = node.Do(ctx, a, protocol.ListPeers, in); err != nil {
				return err
			}
			for _, f := range peers.Following {
				if in.After == "" { // every page has all of them
					lines = append(lines, []string{"following", f.Address, f.State, fmt.Sprint("seq ", f.Seq), attempts(f)})
					if f.Conflict != nil {
						lines = append(lines, conflictLine("conflict", f.Address, *f.Conflict))
					}
				}
			}
			for _, o := range peers.Delivering {
				lines = append(lines, []string{"delivering", o.Inbox, o.State, fmt.Sprintf("seq %d of %d", o.Seq, peers.Head), o.LastError})
			}
			if peers.Next == nil {
				break
			}
		}
		for _, p := range peers.Policies {
			lines = append(lines, []string{"policy", p.Host, p.Policy, p.Note, ""})
		}
		for _, r := range peers.Reports {
			lines = append(lines, conflictLine("reported by", r.Host, r.Conflict))
		}
		return all.rows(w, "what address state at error", lines)
	})
}

func conflictLine(what, address string, c protocol.LogConflict) []string {
	return []string{what, address, c.Kind, fmt.Sprint("seq ", c.Seq), c.At.Format(time.RFC3339)}
}

// attempts describes the state of a board that is followed.
func attempts(f protocol.Followed) string {
	text := f.LastError
	if f.Attempts > 0 {
		text = fmt.Sprintf("attempt %d: %s", f.Attempts, text)
	}
	if f.State == "pending" && f.NextAt != nil {
		text += "; next at " + f.NextAt.Format(time.RFC3339)
	}
	return strings.TrimPrefix(text, "; ")
}

type adminJobCmd struct {
	List    jobListCmd `cmd:"" help:"List jobs of one state."`
	Requeue jobAct     `cmd:"" op:"requeue_job" help:"Try a dead job again."`
	Drop    jobAct     `cmd:"" op:"drop_job" help:"Delete a dead job; what it was to do is never done."`
}

type jobListCmd struct {
	State string `default:"dead" enum:"waiting,dead,done" help:"waiting, dead or done."`
	Kind  string `help:"Only jobs of this kind."`
}

func (c *jobListCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.ListJobs, protocol.JobQuery{State: c.State, Kind: c.Kind, Paging: protocol.Paging{Limit: protocol.MaxLimit}},
		func(jobs protocol.Page[protocol.Job]) error {
			var lines [][]string
			for _, j := range jobs.Items {
				lines = append(lines, []string{fmt.Sprint(j.ID), j.Kind, j.Lane, fmt.Sprint("attempt ", j.Attempt), j.RunAt.Format(time.RFC3339), j.LastError})
			}
			return all.rows(w, "id kind lane attempt runAt error", lines)
		})
}

type jobAct struct {
	act
	ID int64 `arg:"" json:"id"`
}

type adminKeyCmd struct {
	Add    keyAddCmd  `cmd:"" help:"Register a key with a profile, from a JWK file."`
	List   keyListCmd `cmd:"" help:"List the keys of a profile."`
	Retire keyRetire  `cmd:"" op:"retire_key" help:"Retire a key: new signatures with it are not valid."`

	Directory keyDirectoryCmd `cmd:"" help:"Submit a key directory that the owner of a key signed (stoa directory)."`
}

type keyDirectoryCmd struct {
	Thumbprint string `arg:""`
	File       string `arg:"" help:"What stoa directory printed."`
}

func (c *keyDirectoryCmd) Run(w *world, all *adminCmd) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	return all.operate(w, protocol.PutKeyDirectory.Operation, protocol.SignedDirectory{KeyID: c.Thumbprint, Directory: string(raw)})
}

type keyAddCmd struct {
	Handle string `arg:""`
	File   string `arg:"" help:"JWK. A public one registers the key; a private one also lets the node sign for the agent (stored encrypted)."`
}

func (c *keyAddCmd) Run(w *world, all *adminCmd) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		k, private, err := addKey(ctx, a, c.Handle, raw)
		if err != nil {
			return err
		}
		if private {
			fmt.Fprintln(w.stderr, "the node keeps the private key, sealed, and signs for the agent")
		}
		return all.line(w, "thumbprint", k.KeyID)
	})
}

// addKey registers the key of a JWK. Of a private one the node keeps the private half.
func addKey(ctx context.Context, a *node.Admin, handle string, jwk []byte) (k protocol.Key, private bool, err error) {
	if pair, err := key.ParsePair(jwk); err == nil {
		raw, err := pair.MarshalPrivate()
		if err == nil {
			k, err = node.Do(ctx, a, protocol.KeepKey, protocol.PrivateKey{Owned: protocol.Owned{Handle: handle}, JWK: string(raw)})
		}
		return k, true, err
	}
	public, err := key.ParsePublic(jwk)
	if err != nil {
		return k, false, protocol.Errorf(protocol.InvalidRequest, "not a public JWK of a supported kind: %w", err)
	}
	raw, err := key.MarshalPublic(public)
	if err != nil {
		return k, false, err
	}
	in := protocol.NewKey{Owned: protocol.Owned{Handle: handle}}
	if err := json.Unmarshal(raw, &in.JWK); err != nil {
		return k, false, err
	}
	k, err = node.Do(ctx, a, protocol.AddKey, in)
	return k, false, err
}

type keyListCmd struct {
	Handle string `arg:""`
}

func (c *keyListCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.ListKeys, protocol.OwnInput{Owned: protocol.Owned{Handle: c.Handle}}, func(keys protocol.Keys) error {
		var lines [][]string
		for _, k := range keys.Items {
			held, state := "owner", "active"
			if k.Kept {
				held = "node"
			}
			if k.RetiredAt != nil {
				state = "retired " + k.RetiredAt.Format(time.RFC3339)
			}
			lines = append(lines, []string{k.KeyID, "held by the " + held, state})
		}
		return all.rows(w, "thumbprint held state", lines)
	})
}

type keyRetire struct {
	act
	Thumbprint string `arg:"" json:"keyid"`
}

type adminIDCmd struct {
	Put  identityPut    `cmd:"" op:"enrol_identity" help:"Enrol a chain identity for a profile, after asking the chain (needs --chain)."`
	Drop adminIDDropCmd `cmd:"" help:"Remove the chain identity from a profile, with every key that depends on it."`
}

type identityPut struct {
	byHandle
	Identity string `arg:"" json:"erc8004" help:"eip155:<chainId>:<registry>:<agentId>"`
	KeyHash  string `arg:"" json:"keyid" help:"Thumbprint of the identity's key, which the chain must name."`
}

type adminIDDropCmd struct {
	Handle string `arg:""`
}

func (c *adminIDDropCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		in := protocol.OwnInput{Owned: protocol.Owned{Handle: protocol.CleanHandle(c.Handle)}}
		status, err := node.Do(ctx, a, protocol.GetIdentity, in)
		if err != nil {
			return err
		}
		if status.ERC8004 == nil {
			return protocol.Errorf(protocol.NotFound, "@%s is not enrolled with a chain identity", in.Handle)
		}
		if _, err = node.Do(ctx, a, protocol.DropIdentity, in); err == nil {
			fmt.Fprintf(w.stdout, "@%s is no longer enrolled to %s\n", in.Handle, *status.ERC8004)
		}
		return err
	})
}
