package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
)

type verifyProofCmd struct {
	NodeKey string   `placeholder:"FILE" help:"JWK Set of the node. With an address, default: the node's own, which is fetched."`
	Block   []string `placeholder:"0x…" help:"Hash of a block that you know to be of the chain; several are separated by commas."`
	Chain   string   `placeholder:"URL" help:"JSON-RPC endpoint of the identity's chain: it is asked for the block, and who holds the identity now."`
	Current bool     `help:"Ask the node whether it shows the same now."`
	JSON    bool     `name:"json" help:"Print the report as JSON."`
	Key     string   `hidden:"" help:"As verify request has it."`
	Base    string   `hidden:"" help:"As verify request has it."`
	What    string   `arg:"" optional:"" name:"url|file" help:"Address of what is shown, or its proof document; - reads standard input."`
}

func (c *verifyProofCmd) Help() string {
	return "Prints each step: what was compared, with which value, and the section of its standard (docs/PROOF.md). Exit status 0: verified; 3: refused; " +
		"4: undecided. A file with --node-key and --block is verified without any connection."
}

// An undecided is the verdict on what could neither be verified nor refused: exit status 4.
type undecided struct{ error }

func (c *verifyProofCmd) Run(w *world) error {
	if c.Key != "" || c.Base != "" { // verify was verify request once
		return (&verifyRequestCmd{c.Key, c.Base, c.What}).Run(w)
	}
	if c.What == "" {
		return usagef("what is to be verified: an address, or a file; - reads standard input")
	}
	var o attest.Options
	for _, hash := range c.Block {
		o.Blocks = append(o.Blocks, strings.ToLower(hash))
	}
	raw, err := c.read(w, &o)
	if err != nil {
		return err
	}
	if c.NodeKey != "" {
		keys, err := readKeys(c.NodeKey)
		if err != nil {
			return err
		}
		o.Keys = keys.Set
	}
	var later []attest.Step
	if c.Chain != "" {
		steps, err := c.chain(w, raw, &o)
		if err != nil {
			return err
		}
		later = append(later, steps...)
	}
	r := attest.Verify(w.ctx, raw, o)
	if c.Current {
		step, err := c.current(w, raw)
		if err != nil {
			return err
		}
		later = append(later, step)
	}
	for _, s := range later {
		r.Conclude(s)
	}
	return c.print(w, r)
}

// read reads the document: from the node, whose keys are then fetched too, or from a file.
func (c *verifyProofCmd) read(w *world, o *attest.Options) ([]byte, error) {
	if !strings.HasPrefix(c.What, "http://") && !strings.HasPrefix(c.What, "https://") {
		if c.What == "-" {
			return readInput(w, "-")
		}
		return os.ReadFile(c.What)
	}
	u, err := url.Parse(c.What)
	if err != nil || u.Host == "" {
		return nil, usagef("not an address: %q", c.What)
	}
	o.Node = u.Scheme + "://" + u.Host
	raw, err := fetchFrom(w.ctx, o.Node, strings.TrimSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), "/proof")+"/proof", attest.MaxDocument)
	if e, ok := errors.AsType[notServed](err); ok && (e.code == http.StatusGone || e.code == http.StatusNotFound) {
		return nil, notVerified("%s", e.says())
	}
	if err != nil || c.NodeKey != "" {
		return raw, err
	}
	set, err := fetchFrom(w.ctx, o.Node, directoryPath, key.MaxSetBytes)
	if err != nil {
		return nil, err
	}
	keys, err := parseKeys(o.Node, set)
	o.Keys = keys.Set
	return raw, err
}

// says is what the node says about something that it does not serve.
func (e notServed) says() string {
	var p struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(e.body, &p) != nil || p.Detail == "" {
		return e.Error()
	}
	return fmt.Sprintf("the node says: %s (%d)", p.Detail, e.code)
}

// chain asks the chain for the block of the document and for who holds the identity now.
func (c *verifyProofCmd) chain(w *world, raw []byte, o *attest.Options) ([]attest.Step, error) {
	d, err := attest.Parse(raw)
	if err == nil && d.Subject.Kind == attest.KindReview {
		return c.review(w, d)
	}
	if err != nil || d.Authority.Identity == "" {
		return nil, nil // the report says why, or nothing is to be asked
	}
	id, err := erc8004.ParseID(d.Authority.Identity)
	if err != nil {
		return nil, nil
	}
	now, at, err := erc8004.AskNow(w.ctx, c.Chain, id, d.Authority.Block)
	if err != nil {
		return nil, fmt.Errorf("ask the chain: %w", err)
	}
	block := attest.Step{Name: "chain", Result: attest.Good, Compared: "the block of the chain at that height", Section: "PROOF.md §5.1",
		Value: d.Authority.BlockHash}
	if have := strings.ToLower(at.Hex()); have != d.Authority.BlockHash {
		block.Result = attest.Bad
		block.Value = fmt.Sprintf("block %d of the chain is %s: the one in the document was replaced, or never was of this chain", d.Authority.Block, have)
	} else if len(o.Blocks) == 0 {
		o.Blocks = []string{have}
	}
	return []attest.Step{block, holder(d, id, now)}, nil
}

// review asks the chain for the feedback that a review names.
func (c *verifyProofCmd) review(w *world, d attest.Document) ([]attest.Step, error) {
	s := attest.Step{Name: "feedback", Result: attest.Bad, Compared: "agent, client, index and rating with the event of the transaction", Section: "PROOF.md §5.4"}
	var r protocol.Review
	err := json.Unmarshal(d.Subject.Object, &r)
	agent, fault := erc8004.ParseID(r.Agent)
	if err == nil && r.Via == "node" {
		return nil, nil // no chain has it
	}
	at, elsewhere := strings.CutPrefix(r.Evidence.Registry, fmt.Sprintf("eip155:%d:", agent.ChainID))
	registry, wrong := erc8004.ParseAddress(strings.ToLower(at))
	if err := errors.Join(err, fault, wrong); err != nil || !elsewhere {
		s.Value = "the review names no transaction of the chain of its agent"
		return []attest.Step{s}, nil
	}
	f, known, found, err := erc8004.AskFeedback(w.ctx, c.Chain, agent, registry, r.Evidence.Transaction, r.Evidence.LogIndex)
	if err != nil {
		return nil, fmt.Errorf("ask the chain: %w", err)
	}
	hundredths, rated := int64(0), false
	if found {
		hundredths, rated = erc8004.Rating(f.Value, f.Decimals)
	}
	switch same := rated == (r.Rating != nil) && (!rated || hundredths == int64(math.Round(*r.Rating*100))); {
	case !known:
		s.Result, s.Value = attest.Open, "the endpoint does not know the transaction "+r.Evidence.Transaction
	case !found:
		s.Value = "the transaction gave no such feedback: " + r.Evidence.Transaction
	case !strings.EqualFold(f.Client, r.Client) || f.Index != r.Evidence.Index || f.Block != r.Evidence.Block || !same:
		s.Value = fmt.Sprintf("the chain has other feedback there: number %d of %s in block %d", f.Index, f.Client, f.Block)
	default:
		s.Result, s.Value = attest.Good, fmt.Sprintf("feedback %d of %s in block %d; whether it counts is the node's word", f.Index, f.Client, f.Block)
	}
	return []attest.Step{s}, nil
}

// holder compares who holds the identity now with who held it then.
func holder(d attest.Document, id erc8004.ID, now erc8004.View) attest.Step {
	s := attest.Step{Name: "holder", Result: attest.Past, Compared: "owner and key with those of today", Section: "PROOF.md §5.4"}
	var p attest.Post
	_ = json.Unmarshal(d.Subject.Object, &p) // without a key, only owners are compared
	keyid := ""
	if p.Author.KeyID != nil {
		keyid = *p.Author.KeyID
	}
	owner, _ := now.Controllers()
	account, byAccount := httpsig.ParseAccount(keyid)
	_, _, err := now.Key(id, keyid)
	switch {
	case owner == "":
		s.Value = "the registry has no such identity any more"
	case owner != d.Authority.Owner:
		s.Value = fmt.Sprintf("held by another now: %s, at block %d", owner, now.Block)
	case byAccount && now.LevelOf(account.Address) == protocol.ByNothing, !byAccount && err != nil:
		s.Value = fmt.Sprintf("held by %s as then; the author's key has no authority any more", owner)
	default:
		s.Result, s.Value = attest.Good, fmt.Sprintf("held by %s as then, at block %d", owner, now.Block)
	}
	return s
}

// current asks the node whether it shows the object as it is in the document.
func (c *verifyProofCmd) current(w *world, raw []byte) (attest.Step, error) {
	s := attest.Step{Name: "current", Result: attest.Past, Compared: "the object with what the node shows now", Section: "PROOF.md §5.4"}
	d, err := attest.Parse(raw)
	if err != nil {
		return s, notVerified("%w", err)
	}
	now, err := fetchFrom(w.ctx, d.Subject.URL, "/proof", attest.MaxDocument)
	if e, ok := errors.AsType[notServed](err); ok && (e.code == http.StatusGone || e.code == http.StatusNotFound) {
		s.Value = e.says()
		return s, nil
	}
	if err != nil {
		return s, err
	}
	shown, err := attest.Parse(now)
	if err != nil {
		return s, err
	}
	var p attest.Post
	_ = json.Unmarshal(shown.Subject.Object, &p)
	switch {
	case shown.Subject.Hash == d.Subject.Hash:
		s.Result, s.Value = attest.Good, "the node shows the same"
	case p.EditedAt != nil:
		s.Value = fmt.Sprintf("superseded: its author changed it on %s", p.EditedAt.UTC().Format(time.RFC3339))
	default:
		s.Value = "superseded: the node shows another object"
	}
	return s, nil
}

func (c *verifyProofCmd) print(w *world, r attest.Report) error {
	if c.JSON {
		if err := printJSON(w.stdout, r); err != nil {
			return err
		}
	} else {
		t := newTable(w.stdout)
		fmt.Fprintln(t, "STEP\tRESULT\tCOMPARED\tVALUE\tSECTION")
		for _, s := range r.Steps {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Result, s.Compared, s.Value, s.Section)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(plain{w.stdout}, "\n%s: %s, author: %s%s\n", r.Verdict, r.ID, r.Level, since(r))
	}
	switch r.Verdict {
	case attest.Refused:
		return notVerified("a step failed")
	case attest.Undecided:
		return undecided{errors.New("undecided: a step is open, or the node alone says so; see the table, and --node-key, --block and --chain")}
	}
	return nil
}

// since is what was so then and is not now.
func since(r attest.Report) (text string) {
	for _, s := range r.Steps {
		if s.Result == attest.Past {
			text += "; since then: " + s.Value
		}
	}
	return text
}
