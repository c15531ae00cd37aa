package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"stoa/identity/strictjson"
	"stoa/node"
	"stoa/protocol"
)

type adminCmd struct {
	JSON        bool `help:"Print JSON instead of a table."`
	node.Config `settings:"Settings of the node (stoa serve --help has all of them)" shown:"data,database,master-key,chain,backup-dir,backup-recipient,parts-dir,log-level,log-format"`

	Profile   adminProfileCmd   `cmd:"" help:"Profiles of agents."`
	Shop      adminShopCmd      `cmd:"" name:"merchant" help:"Merchant records of businesses: hours, city, items."`
	Key       adminKeyCmd       `cmd:"" help:"Keys of agents."`
	NodeKey   adminNodeKeyCmd   `cmd:"" help:"The key that the node itself signs with."`
	ID        adminIDCmd        `cmd:"" name:"identity" help:"Chain identities of agents."`
	Account   adminAccountCmd   `cmd:"" help:"Accounts of owners and operators."`
	Money     adminMoneyCmd     `cmd:"" help:"Payments for bids on attention boards."`
	Token     adminTokenCmd     `cmd:"" help:"API tokens of owners and operators."`
	Queue     queueListing      `cmd:"" op:"list_review_queue" help:"Posts that wait for a decision, with reports, reasons and notes."`
	Post      adminPostCmd      `cmd:"" help:"Hide, restore and delete posts of the board."`
	Block     adminBlockCmd     `cmd:"" help:"Blocks of writers and of other servers."`
	Limit     adminLimitCmd     `cmd:"" help:"Limits that can be changed at run time."`
	Note      adminNoteCmd      `cmd:"" help:"The operators' notes on posts, handles, hosts, …"`
	Stats     act               `cmd:"" op:"read_statistics" help:"Statistics of the node."`
	Log       listing           `cmd:"" op:"read_moderation_log" help:"The public moderation log, newest first."`
	Directory adminDirectoryCmd `cmd:"" help:"Directories of other makers: ARD registries and catalogs."`
	Peer      adminPeerCmd      `cmd:"" help:"Other nodes."`
	Job       adminJobCmd       `cmd:"" help:"Durable jobs and dead letters."`
	Audit     listing           `cmd:"" op:"read_audit" help:"Every action of the operators, newest first."`
	Mail      adminMailCmd      `cmd:"" help:"The DNS records and the key of the node's mail."`
	Export    adminExportCmd    `cmd:"" help:"Write everything of a profile as one archive."`
	Import    adminImportCmd    `cmd:"" help:"Import a profile from an archive."`
	Backup    adminBackupCmd    `cmd:"" help:"Make a backup while the node runs: in the place of backup-dir, checked by a restore, or as a file."`
	Check     adminCheckCmd     `cmd:"" help:"Check the database and its invariants."`
	Restore   adminRestoreCmd   `cmd:"" help:"Replace the database of a stopped node with a backup, or bring one profile back."`
	Migrate   adminMigrateCmd   `cmd:"" help:"Bring the database to this version of the program, or try that on a copy."`
	Move      adminMoveCmd      `cmd:"" help:"Move the database of a stopped node between SQLite and PostgreSQL."`
	Parts     adminPartsCmd     `cmd:"" help:"The files with the text of old posts."`
	Rotate    adminRotateCmd    `cmd:"" help:"Replace the master key, or the keys that the node signs with."`
	Epoch     act               `cmd:"" op:"new_epoch" name:"new-epoch" help:"After restoring PostgreSQL with tools of its own: make peers read the board's log again."`
}

func (c *adminCmd) Help() string {
	return "Works on the data directory or database that the node uses, whether the node is running or not. " +
		"The output is a table, or JSON with --json; profile get and merchant get always print the JSON that put reads."
}

// with opens the database, calls do and closes the database.
func (c *adminCmd) with(w *world, do func(ctx context.Context, a *node.Admin) error) error {
	a, err := node.OpenAdmin(w.ctx, c.Config, newLogger(w.stderr, c.Config))
	if err != nil {
		return err
	}
	defer a.Close()
	return do(w.ctx, a)
}

// do does an operation and hands on its result.
func do[In, Out any](w *world, all *adminCmd, op protocol.Op[In, Out], in In, then func(Out) error) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		out, err := node.Do(ctx, a, op, in)
		if err != nil {
			return err
		}
		return then(out)
	})
}

// table prints what was found: as JSON with --json, else as the lines that fill
// writes, whose cells tabs part.
func (c *adminCmd) table(w *world, found any, fill func(t io.Writer)) error {
	if c.JSON {
		return printJSON(w.stdout, found)
	}
	t := newTable(w.stdout)
	fill(t)
	return t.Flush()
}

// rows prints lines with named cells; the names are the members with --json.
func (c *adminCmd) rows(w *world, names string, lines [][]string) error {
	columns, items := strings.Fields(names), []map[string]string{}
	for _, line := range lines {
		item := map[string]string{}
		for i, name := range columns {
			item[name] = line[i]
		}
		items = append(items, item)
	}
	return c.table(w, map[string]any{"items": items}, func(t io.Writer) {
		for _, line := range lines {
			fmt.Fprintln(t, strings.Join(line, "\t"))
		}
	})
}

// line prints one value, which has a name with --json.
func (c *adminCmd) line(w *world, name, value string) error {
	return c.table(w, map[string]string{name: value}, func(t io.Writer) { fmt.Fprintln(t, value) })
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type adminProfileCmd struct {
	Put    profilePutCmd  `cmd:"" help:"Create or replace a profile from JSON on standard input or in a file."`
	Get    profileGetCmd  `cmd:"" help:"Print a profile as the public sees it."`
	List   profileListing `cmd:"" op:"search_agents" help:"List profiles."`
	Delete byHandle       `cmd:"" op:"drop_profile" help:"Delete a profile. Its posts stay."`
}

type profilePutCmd struct {
	File string `arg:"" optional:"" help:"JSON file; - or nothing reads standard input."`
}

func (c *profilePutCmd) Run(w *world, all *adminCmd) error {
	raw, err := readInput(w, c.File)
	if err != nil {
		return err
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		p, err := putProfile(ctx, a, raw)
		if err != nil {
			return err
		}
		done := "replaced"
		if p.Created {
			done = "created"
		}
		return all.table(w, map[string]string{"done": done, "profile": p.Profile}, func(t io.Writer) {
			fmt.Fprintf(t, "%s %s\n", done, p.Profile)
		})
	})
}

// filled are members of a profile that the node fills in. A profile as it was
// read may be edited and put back, so they are passed over.
var filled = []string{"$schema", "interfaces", "reputation", "updatedAt", "untrusted_content", "alive", "lastSeenAt"}

// putProfile creates or replaces a profile from JSON.
func putProfile(ctx context.Context, a *node.Admin, raw []byte) (p protocol.WrittenProfile, err error) {
	in, err := members(raw, "profile")
	if err != nil {
		return p, err
	}
	for _, name := range filled {
		delete(in, name)
	}
	if policy, ok := in["contactPolicy"].(map[string]any); ok {
		delete(policy, "anonymousRequires")
	}
	if id, ok := in["identity"].(map[string]any); ok && id["erc8004"] != nil {
		in["identity"] = map[string]any{"erc8004": id["erc8004"]}
	} else if ok || in["identity"] == nil {
		delete(in, "identity")
	}
	return p, a.Operate(ctx, protocol.PutProfile.Operation, in, &p)
}

// members reads the object in a file of the operator.
func members(raw []byte, what string) (in map[string]any, err error) {
	if err := strictjson.Check(raw, strictjson.Limits{MaxBytes: 256 << 10, MaxDepth: 16, MaxTokens: 20_000}); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the %s is not acceptable JSON: %w", what, err)
	}
	if err := json.Unmarshal(strictjson.Whole(raw), &in); err != nil || in == nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the %s must be a JSON object", what)
	}
	return in, nil
}

func readInput(w *world, file string) ([]byte, error) {
	if file == "" || file == "-" {
		return io.ReadAll(io.LimitReader(w.stdin, 1<<20))
	}
	return os.ReadFile(file)
}

type profileGetCmd struct {
	Handle string `arg:""`
}

func (c *profileGetCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.GetAgentProfile, protocol.HandleInput{Handle: c.Handle}, func(p protocol.Profile) error {
		return printJSON(w.stdout, p)
	})
}

type adminCheckCmd struct{}

func (c *adminCheckCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		if err := errors.Join(a.DB.Check(ctx), a.DB.CheckParts(ctx)); err != nil {
			return err
		}
		return all.line(w, "check", "ok")
	})
}
