package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/netx"
	"stoa/node/credential"
	"stoa/node/moderation"
	"stoa/protocol"
	"stoa/storage"
)

// AddKeyFile registers the key of a JWK. Of a private one the node keeps the
// private half, sealed, and reports kept.
func (a *Admin) AddKeyFile(ctx context.Context, handle string, jwk []byte) (thumbprint string, kept bool, err error) {
	if pair, err := key.ParsePair(jwk); err == nil {
		return pair.Thumbprint(), true, a.AddKey(ctx, handle, pair, true)
	}
	thumbprint, err = a.AddPublicKey(ctx, handle, jwk)
	return thumbprint, false, err
}

// Keys lists the keys of a profile, retired ones included.
func (a *Admin) Keys(ctx context.Context, handle string) (keys []storage.AgentKey, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		keys, err = tx.AgentKeys(ctx, handle)
		return err
	})
	return keys, err
}

// RetireKey takes a key's authority on this node away. A key that the chain
// names is revoked on the chain.
func (a *Admin) RetireKey(ctx context.Context, thumbprint string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.RetireAgentKey(ctx, thumbprint); err != nil {
			return notFound(err, "there is no key %s", thumbprint)
		}
		return tx.Audit(ctx, "operator", "key retire", thumbprint, "")
	})
}

// EnrolIdentity asks the chain whether the key speaks for the identity and, if so,
// enrols it for the profile, with the owner and wallet that the chain names. A key
// that the profile does not have yet is registered as the chain has it.
func (a *Admin) EnrolIdentity(ctx context.Context, handle, identity, keyHash string) error {
	reader, err := credential.NewChain(a.config.Chain, a.config.Dev, a.DB, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if reader == nil {
		return fmt.Errorf("%w: name the chain with --chain", ErrConfig)
	}
	e, jwk, err := reader.Enrolment(ctx, identity, keyHash)
	if err != nil {
		return err
	}
	e.Handle = handle
	return a.enrol(ctx, e, jwk)
}

// Jobs lists the first hundred jobs of a state.
func (a *Admin) Jobs(ctx context.Context, state storage.JobState) (jobs []storage.Job, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.ListJobs(ctx, state, protocol.MaxLimit, "")
		jobs = page.Items
		return err
	})
	return jobs, err
}

// RequeueJob gives a dead job a new life.
func (a *Admin) RequeueJob(ctx context.Context, id int64) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.RequeueJob(ctx, id); err != nil {
			return notFound(err, "there is no dead job %d", id)
		}
		return tx.Audit(ctx, "operator", "job requeue", strconv.FormatInt(id, 10), "")
	})
}

// Follow asks the running node to follow a board.
func (a *Admin) Follow(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return protocol.Errorf(protocol.InvalidRequest, "%q is not an address such as https://n1.example", address)
	}
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.DropNamed(ctx, moderation.FollowJob, followName(address)); err != nil { // the operator wants it tried now
			return err
		}
		if err := enqueueFollow(ctx, tx, moderation.FollowArgs{URL: address, Since: tx.Now}, 0, ""); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "peer follow", address, "")
	})
}

func followName(address string) string { return moderation.FollowJob + " " + address }

func enqueueFollow(ctx context.Context, tx *storage.Tx, in moderation.FollowArgs, wait time.Duration, last string) error {
	args, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{
		Kind: moderation.FollowJob, Lane: followName(in.URL), Args: args, Dedupe: followName(in.URL), RunAt: tx.Now.Add(wait), LastError: last,
	})
}

// unfollowKind is the job that stops following a board.
const unfollowKind = "unfollow"

// Unfollow asks the running node to stop following a board, and to tell it so.
// What it has sent stays.
func (a *Admin) Unfollow(ctx context.Context, board string) error {
	args, err := json.Marshal(map[string]string{"url": board})
	if err != nil {
		return err
	}
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if n, err := tx.DropNamed(ctx, moderation.FollowJob, followName(board)); err != nil || n > 0 { // of an address that is not followed yet
			return errors.Join(err, tx.Audit(ctx, "operator", "peer unfollow", board, ""))
		}
		s, err := tx.SubscriptionByBoard(ctx, board)
		if err != nil {
			return notFound(err, "this node does not follow %s", board)
		}
		if err := tx.Enqueue(ctx, storage.Job{Kind: unfollowKind, Lane: "host:" + s.Host, Args: args, Dedupe: unfollowKind + " " + board}); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "peer unfollow", board, "")
	})
}

// SetHostPolicy sets how a host and its subdomains are treated; "none" takes
// the policy away.
func (a *Admin) SetHostPolicy(ctx context.Context, host, policy, note string) error {
	if policy == "none" {
		policy = ""
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !protocol.IsHost(host) {
		return protocol.Errorf(protocol.InvalidRequest, "%q is not a host such as n1.example", host)
	}
	if f := protocol.TextFault("note", note); f != nil {
		return protocol.Errorf(protocol.InvalidRequest, "%s: %s", f.Pointer, f.Detail)
	}
	if policy == string(storage.PolicyReject) && moderation.OwnHost(a.Base, host) {
		return protocol.Errorf(protocol.InvalidRequest, "%s is this node, or a domain that it is in", host)
	}
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.SetHostPolicy(ctx, storage.HostPolicy{Host: host, Policy: storage.Policy(policy), Note: note}); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "peer policy", host, policy+" "+note)
	})
}

// Follow lets a running node follow another at once.
func (n *Node) Follow(ctx context.Context, address string) error {
	_, err := n.federation.Follow(ctx, address)
	return err
}

// AcceptedPeers counts the boards that accepted our follow.
func (n *Node) AcceptedPeers(ctx context.Context) (accepted int, err error) {
	err = n.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.ListSubscriptions(ctx)
		for _, s := range all {
			if s.State == storage.SubscriptionAccepted {
				accepted++
			}
		}
		return err
	})
	return accepted, err
}

// SeesKey reports whether the chain, as this node sees it, gives a key authority
// for an identity.
func (n *Node) SeesKey(ctx context.Context, identity, keyid string) bool {
	if n.chain == nil {
		return false
	}
	_, err := n.chain.Grant(ctx, identity, keyid)
	return err == nil
}

// followPauses is the timetable of a follow whose node does not answer; from then
// on it is tried once an hour, until followFor is over.
var followPauses = []time.Duration{
	5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
}

const followFor = 24 * time.Hour

// followJob is the handler of moderation.FollowJob. A node that is not a stoa node
// with a board is final; one that does not answer is tried for a day.
func (n *Node) followJob(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	var args moderation.FollowArgs
	if err := json.Unmarshal(j.Args, &args); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "arguments of the job: %w", err)
	}
	cause := n.Follow(ctx, args.URL)
	if cause == nil {
		return nil, nil
	}
	if e, ok := errors.AsType[*protocol.Error](cause); ok && !e.Code.Temporary() {
		return nil, cause // buried, with a word in the log
	}
	wait := netx.Jitter(followPauses[min(args.Tries, len(followPauses)-1)])
	args.Tries++
	if !args.Since.IsZero() && time.Since(args.Since)+wait > followFor {
		return nil, protocol.Errorf(protocol.Gone, "given up after a day and %d tries: %w", args.Tries, cause)
	}
	n.log.Warn("follow failed and is tried again", "address", args.URL, "tries", args.Tries, "in", wait.Round(time.Second), "err", cause)
	return func(ctx context.Context, tx *storage.Tx) error {
		if args.Since.IsZero() { // queued by a version that did not say
			args.Since = tx.Now
		}
		return enqueueFollow(ctx, tx, args, wait, cause.Error())
	}, nil
}

// unfollowJob is the handler of unfollowKind.
func (n *Node) unfollowJob(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	var args struct{ URL string }
	if err := json.Unmarshal(j.Args, &args); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "arguments of the job: %w", err)
	}
	if err := n.federation.Unfollow(ctx, args.URL); !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	return nil, nil
}

// NewEpoch tells the followers of the board to walk its log again. It is for a
// database that was restored from a backup by other means than Restore.
func (a *Admin) NewEpoch(ctx context.Context) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.NewEpoch(ctx, a.board.ID()); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "new epoch", a.board.ID(), "")
	})
}

// Restore puts a backup in place of a stopped node's database and begins a new
// epoch of the board's log, so that peers walk it again. What stood there is
// kept beside it.
func Restore(ctx context.Context, c Config, file string, log *slog.Logger) error {
	if c.Database != "" {
		return fmt.Errorf("%w: restore works on SQLite; restore PostgreSQL with pg_restore and run: stoa admin check", ErrConfig)
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if _, err := key.LoadMaster(c.masterKey()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrConfig, credential.MissingMaster(c.masterKey())) // before anything is replaced
	}
	target := c.sqlite()
	if err := storage.Replace(ctx, target, file); err != nil {
		return err
	}
	a, err := OpenAdmin(ctx, c, log)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.NewEpoch(ctx)
}

func notFound(err error, format string, args ...any) error {
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.Errorf(protocol.NotFound, format, args...)
	}
	return err
}
