package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"stoa/protocol"
	"stoa/storage"
)

// A Progress is called with a member and the number of its records that are done. It may be nil.
type Progress func(member string, n int)

// Write writes the archive of a profile as it is at one moment. Members are kept in a spool file
// until their lengths are known, so that memory is bounded by one record. by is the caller, for
// the audit log.
func (a *Archive) Write(ctx context.Context, w io.Writer, by, handle, passphrase string, progress Progress) error {
	spool, err := a.Spool()
	if err != nil {
		return err
	}
	defer spool.Close()
	m := manifest{Format: protocol.ArchiveFormat, Handle: handle, Node: a.Base, About: slices.Clone(about)}
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		e := &exporting{Archive: a, tx: tx, handle: handle, spool: spool, manifest: &m, progress: progress}
		return e.all(ctx, passphrase)
	})
	if err != nil {
		return err
	}
	if m.PrivateKeys == "encrypted" {
		if err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Audit(ctx, by, "keys export", handle, "private keys, encrypted")
		}); err != nil {
			return err
		}
	}
	return a.pack(w, spool, &m)
}

// pack writes the tar: manifest and signature, then the members from the spool.
func (a *Archive) pack(w io.Writer, spool *os.File, m *manifest) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	sig := signature{KeyID: a.Signer.Thumbprint()}
	if sig.Protected, sig.Signature, err = a.Signer.SignJWS(raw, sig.KeyID, ""); err != nil {
		return err
	}
	signed, err := json.MarshalIndent(sig, "", "  ")
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	put := func(name string, size int64, r io.Reader) error {
		if err := out.WriteHeader(&tar.Header{
			Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, ModTime: m.ExportedAt.Truncate(time.Second), Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
		_, err := io.CopyN(out, r, size)
		return err
	}
	if err := errors.Join(put(manifestFile, int64(len(raw)), bytes.NewReader(raw)), put(signatureFile, int64(len(signed)), bytes.NewReader(signed))); err != nil {
		return err
	}
	for _, one := range m.Members {
		if err := put(one.Name, one.Bytes, spool); err != nil {
			return fmt.Errorf("pack %s: %w", one.Name, err)
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

type exporting struct {
	*Archive
	tx       *storage.Tx
	handle   string
	spool    *os.File
	manifest *manifest
	progress Progress
}

func (e *exporting) all(ctx context.Context, passphrase string) error {
	e.manifest.ExportedAt = e.tx.Now
	if runs, err := e.tx.Imports().Running(ctx, e.handle); err != nil {
		return err
	} else if runs {
		return errUnderWay // a half-imported profile makes no archive
	}
	p, m, err := e.tx.Merchants().Own(ctx, e.handle)
	if err != nil {
		return storage.IfMissing(err, protocol.NoAgent(e.handle))
	}
	if err := e.one(profileFile, profileRecord{
		Draft: p.Draft, Unlisted: p.Unlisted, ERC8004: p.ERC8004, KeyID: p.KeyHash, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}); err != nil {
		return err
	}
	if m != nil {
		if err := e.one(merchantFile, merchant(m)); err != nil {
			return err
		}
	}
	if n, err := e.tx.Profiles().NotifySettings(ctx, e.handle); err != nil {
		return err
	} else if n.Mail != "" || n.Webhook != "" || n.Events != nil {
		if err := e.one(notifyFile, protocol.NotifyDraft{Mail: n.Mail, Webhook: n.Webhook, Events: n.Events}); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return e.rooms(ctx, p) },
		func() error { return e.keys(ctx, passphrase) },
		func() error { return e.nodeKeys(ctx) },
		func() error { return e.items(ctx, m) },
		func() error { return e.pictures(ctx) },
		func() error { return e.posts(ctx) },
		func() error { return e.threads(ctx) },
		func() error { return e.blocks(ctx) },
		func() error { return e.meetings(ctx) },
		func() error { return e.bids(ctx) },
		func() error { return e.orders(ctx) },
		func() error { return e.receipts(ctx) },
		func() error { return e.written(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func merchant(m *storage.StoredMerchant) merchantRecord {
	r := merchantRecord{Record: m.Draft, UpdatedAt: m.UpdatedAt}
	if m.ItemCount > protocol.MaxRecordItems {
		return r
	}
	for _, i := range m.Items {
		r.Record.Items = append(r.Record.Items, i.Draft)
	}
	return r
}

// items writes the catalog that is too large for the merchant record.
func (e *exporting) items(ctx context.Context, m *storage.StoredMerchant) error {
	if m == nil || m.ItemCount <= protocol.MaxRecordItems {
		return nil
	}
	return e.member(itemsFile, func(line func(any) error) error {
		return e.tx.Items().Each(ctx, e.handle, func(i *storage.StoredItem) error { return line(i.Draft) })
	})
}

// member writes one member to the spool; fill calls line for each record.
func (e *exporting) member(name string, fill func(line func(any) error) error) error {
	sum, count := sha256.New(), 0
	var size int64
	line := func(v any) error {
		raw, ok := v.([]byte)
		if !ok {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if whole(name) {
				enc.SetIndent("", "  ")
			}
			if err := enc.Encode(v); err != nil {
				return err
			}
			raw = b.Bytes()
		}
		sum.Write(raw)
		size += int64(len(raw))
		count++
		if e.progress != nil && count%1000 == 0 {
			e.progress(name, count)
		}
		_, err := e.spool.Write(raw)
		return err
	}
	if err := fill(line); err != nil {
		return fmt.Errorf("export %s: %w", name, err)
	}
	e.manifest.Members = append(e.manifest.Members, member{name, count, size, hex.EncodeToString(sum.Sum(nil))})
	if e.progress != nil {
		e.progress(name, count)
	}
	return nil
}

func (e *exporting) one(name string, v any) error {
	return e.member(name, func(line func(any) error) error { return line(v) })
}

func (e *exporting) keys(ctx context.Context, passphrase string) error {
	keys, err := e.tx.Keys().OfProfile(ctx, e.handle)
	if err != nil {
		return err
	}
	kept := 0
	if err := e.member(keysFile, func(line func(any) error) error {
		for _, k := range keys {
			r := keyRecord{Kept: k.Sealed != nil, CreatedAt: k.CreatedAt, RetiredAt: k.RetiredAt, Identity: k.Identity, OnChain: k.OnChain}
			if err := json.Unmarshal(k.PublicJWK, &r.JWK); err != nil {
				return err
			}
			if r.Kept {
				kept++
			}
			if err := line(r); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	switch {
	case kept == 0:
		e.manifest.PrivateKeys = "none"
		return nil
	case passphrase == "":
		e.manifest.PrivateKeys = "left-out"
		return nil
	}
	e.manifest.PrivateKeys = "encrypted"
	sealed, err := e.private(keys, passphrase)
	if err != nil {
		return err
	}
	return e.one(privateFile, sealed)
}

// private returns the private keys that the node holds, encrypted. They are never written in
// clear.
func (e *exporting) private(keys []storage.AgentKey, passphrase string) ([]byte, error) {
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	to.SetWorkFactor(cmp.Or(e.Work, workFactor))
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if keys[i].Sealed == nil {
			continue
		}
		pair, err := e.Open(&keys[i])
		if err != nil {
			return nil, err
		}
		raw, err := pair.MarshalPrivate()
		if err != nil {
			return nil, err
		}
		var one bytes.Buffer
		if err := json.Compact(&one, raw); err != nil {
			return nil, err
		}
		one.WriteByte('\n')
		if _, err := one.WriteTo(w); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return sealed.Bytes(), err
}

// workFactor is scrypt's: 2^17 takes about half a second and 128 MiB. A process uses that at most
// once for each archive that it makes at the same time.
const workFactor = 17

func (e *exporting) posts(ctx context.Context) error {
	return e.member(postsFile, func(line func(any) error) error {
		return e.tx.Posts().EachOwn(ctx, e.handle, func(p *storage.ArchivedPost) error {
			var revisions []protocol.Revision
			if p.Revisions > 0 {
				var err error
				if revisions, err = e.tx.Posts().Revisions(ctx, p.ID); err != nil {
					return err
				}
			}
			return line(postRecord{
				ID: p.URI[strings.LastIndexByte(p.URI, '/')+1:], URI: p.URI, Kind: string(p.Kind), Title: p.Title, Body: p.Body, Tags: p.Tags,
				ReplyTo: p.ParentURI, Board: p.Board, Author: recordOf(p.Author), State: string(p.State), Reason: p.Reason,
				CreatedAt: p.CreatedAt, EditedAt: p.EditedAt, Revisions: revisions, Evidence: p.Evidence, Statement: p.Statement,
			})
		})
	})
}

func (e *exporting) threads(ctx context.Context) error {
	return e.member(threadsFile, func(line func(any) error) error {
		for after, more := "", true; more; {
			page, err := e.tx.Threads().List(ctx, e.handle, "", protocol.MaxLimit, after)
			if err != nil {
				return err
			}
			for i := range page.Items {
				t, removed, err := e.tx.Leavings().Thread(ctx, &page.Items[i], protocol.AgentSide)
				if err == nil {
					err = e.thread(ctx, t, line)
				}
				if err == nil && !removed { // the address for replies is its writer's
					err = e.callbacks(ctx, t.ID, line)
				}
				if err != nil {
					return err
				}
			}
			if more = page.Next != nil; more {
				after = *page.Next
			}
		}
		return nil
	})
}

func (e *exporting) thread(ctx context.Context, t *storage.StoredThread, line func(any) error) error {
	if err := line(threadLine{Thread: &threadRecord{
		ID: t.ID, Kind: string(t.Kind), State: string(t.State), Writer: t.Writer, Author: recordOf(t.Author),
		TokenHash: hex.EncodeToString(t.TokenHash[:]), Callback: t.Callback, Messages: t.Messages, Unread: t.Unread, Unseen: t.Unseen,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, ClosedAt: t.ClosedAt, ClosedBy: t.ClosedBy,
	}}); err != nil {
		return err
	}
	return e.messages(ctx, t, protocol.AgentSide, func(m *messageRecord) error { return line(threadLine{Message: m}) })
}

func (e *exporting) callbacks(ctx context.Context, thread string, line func(any) error) error {
	for after, more := "", true; more; {
		page, err := e.tx.Callbacks().List(ctx, e.handle, "", thread, protocol.MaxLimit, after)
		if err != nil {
			return err
		}
		for _, c := range page.Items {
			if err := line(threadLine{Callback: &callbackRecord{
				ID: c.ID, N: c.N, URL: c.URL, State: string(c.State), Attempts: c.Attempts, Status: c.Status, LastError: c.LastError, CreatedAt: c.CreatedAt,
			}}); err != nil {
				return err
			}
		}
		if more = page.Next != nil; more {
			after = *page.Next
		}
	}
	return nil
}

// messages writes the messages of a thread, as a side of it reads them.
func (e *exporting) messages(ctx context.Context, t *storage.StoredThread, reader protocol.Side, line func(*messageRecord) error) error {
	_, removed, err := e.tx.Leavings().Thread(ctx, t, reader)
	if err != nil {
		return err
	}
	messages, err := e.tx.Threads().MessagesFrom(ctx, t.ID, 1, protocol.MaxThreadMessages)
	for _, m := range messages {
		if removed {
			storage.Removed(&m.Message, reader)
		}
		if err == nil {
			err = line(&messageRecord{
				N: m.N, ID: m.ID, From: string(m.From), Author: recordOf(m.Author), Text: m.Text, ClientID: m.ClientID, CreatedAt: m.CreatedAt,
			})
		}
	}
	return err
}

func (e *exporting) blocks(ctx context.Context) error {
	return e.member(blocksFile, func(line func(any) error) error {
		for after, more := "", true; more; {
			page, err := e.tx.ContactBlocks().List(ctx, e.handle, protocol.MaxLimit, after)
			if err != nil {
				return err
			}
			for _, b := range page.Items {
				names, err := e.tx.ContactBlocks().Names(ctx, b.ID)
				if err != nil {
					return err
				}
				if err := line(blockRecord{
					ID: b.ID, Writer: b.Writer, Names: names, Author: recordOf(b.Author), ThreadID: b.ThreadID, Note: b.Note, At: b.At,
				}); err != nil {
					return err
				}
			}
			if more = page.Next != nil; more {
				after = *page.Next
			}
		}
		return nil
	})
}
