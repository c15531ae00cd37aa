package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"stoa/node"
	"stoa/protocol"
)

// severities are the severities of a list of domain blocks of Mastodon, as policies. What a block of the severity noop does besides
// (reject_media, reject_reports) has no counterpart here.
var severities = map[string]string{"suspend": "reject", "silence": "silence"}

// domainColumns is the first line of such a list.
var domainColumns = []string{"#domain", "#severity", "#reject_media", "#reject_reports", "#public_comment", "#obfuscate"}

type peerImportCmd struct {
	File   string `arg:"" help:"File of domain blocks as Mastodon exports them, or - for standard input."`
	DryRun bool   `help:"Change nothing; print what would be done."`
}

func (c *peerImportCmd) Run(w *world, all *adminCmd) error {
	raw, err := readInput(w, c.File)
	if err != nil {
		return err
	}
	found, err := readDomainBlocks(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		peers, err := node.Do(ctx, a, protocol.ListPeers, protocol.PeersQuery{})
		if err != nil {
			return err
		}
		var lines [][]string
		for _, b := range found {
			i := slices.IndexFunc(peers.Policies, func(p protocol.PeerPolicy) bool { return p.Host == b.Host })
			done := b.Policy
			switch {
			case b.Policy == "":
				done = "left out: " + b.Note
			case i >= 0 && (peers.Policies[i].Policy != "silence" || b.Policy != "reject"):
				done = "stays " + peers.Policies[i].Policy // a list makes no policy milder, and refuses nobody whom the operator admits
			case !c.DryRun:
				_, err := node.Do(ctx, a, protocol.SetPeerPolicy, b)
				if protocol.CodeOf(err) == protocol.InvalidRequest {
					err, done = nil, "left out: "+err.Error()
				}
				if err != nil {
					return fmt.Errorf("%s: %w; the hosts before it have their policies", b.Host, err)
				}
			}
			lines = append(lines, []string{b.Host, done})
		}
		return all.rows(w, "host policy", lines)
	})
}

// readDomainBlocks reads a list of domain blocks. A line that cannot be a policy has none, and the reason as its note.
func readDomainBlocks(r io.Reader) (found []protocol.PolicyChange, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	at := map[string]int{"domain": 0, "severity": -1, "public_comment": -1}
	for n := 0; ; n++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if n == 0 && strings.TrimPrefix(strings.TrimPrefix(record[0], "\ufeff"), "#") == "domain" {
			for i, name := range record {
				at[strings.TrimPrefix(strings.TrimPrefix(name, "\ufeff"), "#")] = i
			}
			continue
		}
		column := func(name, otherwise string) string {
			if i := at[name]; i >= 0 && i < len(record) {
				return strings.TrimSpace(record[i])
			}
			return otherwise
		}
		b := protocol.PolicyChange{Host: strings.ToLower(column("domain", "")), Note: protocol.Clip(column("public_comment", ""), 1000)}
		severity := column("severity", "suspend")
		b.Policy = severities[severity]
		switch {
		case b.Host == "":
			continue
		case b.Policy == "":
			b.Note = "the severity " + severity
		case !protocol.IsHost(b.Host):
			b.Policy, b.Note = "", "not a host in ASCII; a list with hidden names has no such"
		}
		found = append(found, b)
	}
}

type peerExportCmd struct{}

func (c *peerExportCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.ListPeers, protocol.PeersQuery{}, func(peers protocol.PeersView) error {
		out := csv.NewWriter(w.stdout)
		lines := [][]string{domainColumns}
		for _, p := range peers.Policies {
			for severity, policy := range severities {
				if policy == p.Policy && p.Host != "*" {
					lines = append(lines, []string{p.Host, severity, "false", "false", p.Note, "false"})
				}
			}
		}
		return out.WriteAll(lines)
	})
}
