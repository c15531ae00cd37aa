package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// An AgentDocument is the reading of the registration document of a chain identity that has a profile here.
type AgentDocument struct {
	Agent    string    // chain identity, in lower case
	URI      string    // SHA-256 of the agentURI that was read last, base64url; "" before the first reading
	Fault    string    // why the document is not used; "" for nothing
	Failures int       // readings in a row that could not be completed
	ReadAt   time.Time // the last reading; zero: never
	NextAt   time.Time
}

var agentDocumentTable = tableOf[AgentDocument]("agent_document")

// AgentDocuments reads and writes readings of registration documents.
type AgentDocuments struct{ tx *Tx }

func (tx *Tx) AgentDocuments() AgentDocuments { return AgentDocuments{tx} }

var agentDocumentsDue = agentDocumentTable.from + `WHERE next_at <= ? ORDER BY next_at LIMIT ?`

// Due returns the readings that are due, those that wait longest first.
func (ds AgentDocuments) Due(ctx context.Context, limit int) ([]AgentDocument, error) {
	return list[AgentDocument](ctx, ds.tx, agentDocumentsDue, millis(ds.tx.Now), limit)
}

// ByAgent returns the reading of an identity; ErrNotFound when none is kept.
func (ds AgentDocuments) ByAgent(ctx context.Context, agent string) (AgentDocument, error) {
	return find[AgentDocument](ctx, ds.tx, agentDocumentTable.from+`WHERE agent = ?`, agent)
}

// begin has the document of an identity that was enrolled now read soon, and ends what an earlier owner's showed.
func (ds AgentDocuments) begin(ctx context.Context, agent string) error {
	if err := ds.show(ctx, agent, protocol.AgentLinks{}); err != nil {
		return err
	}
	return agentDocumentTable.put(ctx, ds.tx, &AgentDocument{Agent: agent, NextAt: ds.tx.Now}, "agent")
}

// Drop deletes the reading of an identity that has no profile any more, and its links.
func (ds AgentDocuments) Drop(ctx context.Context, agent string) error {
	if err := ds.show(ctx, agent, protocol.AgentLinks{}); err != nil {
		return err
	}
	return ds.tx.exec(ctx, `DELETE FROM agent_document WHERE agent = ?`, agent)
}

// Put stores a reading, and as links what it showed. It does nothing when the identity has another owner here than owner.
func (ds AgentDocuments) Put(ctx context.Context, d AgentDocument, owner string, links protocol.AgentLinks) error {
	e, err := ds.tx.Enrolments().ByIdentity(ctx, d.Agent)
	if err != nil {
		return IfMissing(err, nil)
	}
	if _, err := ds.tx.Profiles().lock(ctx, e.Handle); err != nil {
		return err
	}
	if e, err = ds.tx.Enrolments().ByIdentity(ctx, d.Agent); err != nil || e.Owner != owner {
		return IfMissing(err, nil)
	}
	if err := ds.show(ctx, d.Agent, links); err != nil {
		return err
	}
	return agentDocumentTable.put(ctx, ds.tx, &d, "agent")
}

// Postpone stores when a reading is due next, and nothing else.
func (ds AgentDocuments) Postpone(ctx context.Context, agent string, at time.Time) error {
	return ds.tx.exec(ctx, `UPDATE agent_document SET next_at = ? WHERE agent = ?`, millis(at), agent)
}

const twinsOfAgent = `DELETE FROM agent_twin WHERE agent = ?`

// show stores the links of an identity for its profile, and by which identities they end.
func (ds AgentDocuments) show(ctx context.Context, agent string, links protocol.AgentLinks) error {
	text := ""
	if len(links.Domains)+len(links.AlsoRegistered) > 0 {
		raw, err := json.Marshal(links)
		if err != nil {
			return fmt.Errorf("encode links: %w", err)
		}
		text = string(raw)
	}
	if _, err := ds.tx.writeAside(ctx, `UPDATE profile SET identity_links = ? WHERE erc8004 = ? AND identity_links <> ?`, text, agent, text); err != nil {
		return err
	}
	if _, err := ds.tx.write(ctx, twinsOfAgent, agent); err != nil {
		return err
	}
	for _, l := range links.AlsoRegistered {
		if err := ds.tx.exec(ctx, `INSERT INTO agent_twin (id, agent, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			l.Name+" "+agent, agent, millis(ds.tx.Now)); err != nil {
			return err
		}
	}
	return nil
}

// Changed has the document of an identity read now, if it has a profile.
func (ds AgentDocuments) Changed(ctx context.Context, agent string) error {
	return ds.Postpone(ctx, agent, ds.tx.Now)
}

const twinsOf = `SELECT agent FROM agent_twin WHERE id > ? AND id < ? ORDER BY id LIMIT 100`

// Sold ends the links to an identity that has another owner, and has the documents of those that had one read again.
func (ds AgentDocuments) Sold(ctx context.Context, other string) error {
	agents, err := list[string](ctx, ds.tx, twinsOf, other+" ", other+"!") // ! is the character after the space
	for _, agent := range agents {
		var text string
		if err = ds.tx.row(ctx, `SELECT identity_links FROM profile WHERE erc8004 = ?`, agent).Scan(&text); err != nil {
			if err = orNothing(err); err != nil {
				return err
			}
			continue
		}
		links, err := linksOf(text)
		if err != nil {
			return err
		}
		links.AlsoRegistered = slices.DeleteFunc(links.AlsoRegistered, func(l protocol.AgentLink) bool { return l.Name == other })
		if err = ds.show(ctx, agent, links); err != nil {
			return err
		}
		if err = ds.Changed(ctx, agent); err != nil {
			return err
		}
	}
	return err
}

const twinsOfChain = `UPDATE agent_document SET next_at = ? WHERE agent IN (SELECT agent FROM agent_twin WHERE id > ? AND id < ?)`

// Doubt has all documents read again that are linked to identities of a chain, of which transfers may have been missed.
func (ds AgentDocuments) Doubt(ctx context.Context, chain uint64) error {
	prefix := fmt.Sprintf("eip155:%d", chain)
	return ds.tx.exec(ctx, twinsOfChain, millis(ds.tx.Now), prefix+":", prefix+";") // ; is the character after :
}

const twinInRegistry = `SELECT 1 FROM agent_twin WHERE id > ? AND id < ? LIMIT 1`

// TwinIn reports whether an identity of a registry, eip155:<chainId>:<address>, is linked to.
func (ds AgentDocuments) TwinIn(ctx context.Context, registry string) (bool, error) {
	return ds.tx.exists(ctx, twinInRegistry, registry+":", registry+";")
}

// linksOf parses the links of a profile as they are stored.
func linksOf(text string) (links protocol.AgentLinks, err error) {
	if strings.TrimSpace(text) == "" {
		return links, nil
	}
	if err = json.Unmarshal([]byte(text), &links); err != nil {
		err = fmt.Errorf("links of an identity: %w", err)
	}
	return links, err
}
