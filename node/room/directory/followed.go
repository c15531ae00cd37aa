package directory

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// How followed directories are read.
const (
	readEvery   = 24 * time.Hour
	readWhole   = 7 * 24 * time.Hour // for so long one whose tag is the same is not read: a policy of this node may have changed
	readAgain   = 15 * time.Minute   // after the first failure
	readFor     = time.Minute        // for all requests of one reading
	entriesOnce = 100                // that one transaction writes
)

func directoryJob(address string, at time.Time) storage.Job {
	name := string(storage.DirectoryJob) + " " + address
	return storage.Job{Kind: storage.DirectoryJob, Lane: name, Dedupe: name, Args: []byte(address), RunAt: at}
}

// FollowDirectory has a directory of another maker read now and then daily.
func (d *Directory) FollowDirectory(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ARDDirectoryURL) (protocol.None, error) {
	address, registry, err := protocol.ParseARDDirectory(in.URL, d.House.Private)
	if err != nil {
		return protocol.None{}, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return protocol.None{}, err
	}
	s, err := tx.ARDSources().ByURL(ctx, address)
	switch {
	case err == nil:
		s.Tag, s.NextAt = "", tx.Now
		err = tx.ARDSources().Put(ctx, s)
	case errors.Is(err, storage.ErrNotFound):
		err = tx.ARDSources().Add(ctx, storage.ARDSource{URL: address, Host: u.Host, Registry: registry, NextAt: tx.Now})
	}
	if err != nil {
		return protocol.None{}, err
	}
	job := directoryJob(address, tx.Now)
	if _, err := tx.Jobs().DropNamed(ctx, job.Kind, job.Dedupe); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, errors.Join(tx.Enqueue(ctx, job), tx.Audit(ctx, c.Actor(), "directory follow", address, ""))
}

// UnfollowDirectory deletes a followed directory and its entries.
func (d *Directory) UnfollowDirectory(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ARDDirectoryURL) (protocol.None, error) {
	address, _, err := protocol.ParseARDDirectory(in.URL, true)
	if err != nil {
		return protocol.None{}, err
	}
	job := directoryJob(address, tx.Now)
	if _, err := tx.Jobs().DropNamed(ctx, job.Kind, job.Dedupe); err != nil {
		return protocol.None{}, err
	}
	ok, err := tx.ARDSources().Delete(ctx, address)
	if err == nil && !ok {
		err = protocol.Errorf(protocol.NotFound, "this node does not follow %s; list_directories names those that it follows", address)
	}
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "directory unfollow", address, "")
}

// Directories lists the followed directories.
func (d *Directory) Directories(ctx context.Context, tx *storage.Tx, _ protocol.Caller, _ protocol.None) (protocol.ARDDirectories, error) {
	out := protocol.ARDDirectories{Items: []protocol.ARDDirectory{}, Untrusted: true}
	all, err := tx.ARDSources().List(ctx)
	for _, s := range all {
		v := protocol.ARDDirectory{URL: s.URL, Kind: "catalog", State: "current", Refused: s.Refused, Tag: s.Tag, NextAt: s.NextAt,
			Attempts: s.Failures, LastError: s.LastError}
		if s.Registry {
			v.Kind = "registry"
		}
		for _, t := range []struct {
			at   time.Time
			into **time.Time
		}{{s.CheckedAt, &v.CheckedAt}, {s.OKAt, &v.ReadAt}} {
			if !t.at.IsZero() {
				*t.into = &t.at
			}
		}
		switch {
		case s.OKAt.IsZero() && s.Failures == 0:
			v.State = "pending"
		case !s.OKAt.IsZero() && tx.Now.Sub(s.OKAt) > storage.GoneAfter:
			v.State = "gone"
		case s.Failures > 0:
			v.State = "failing"
		}
		if v.Entries, err = tx.ARDSources().Count(ctx, s.URL); err != nil {
			return out, err
		}
		out.Items = append(out.Items, v)
	}
	return out, err
}

// readDirectory is the handler of storage.DirectoryJob. Entries are stored in several transactions, each of which is a part of
// the same change: a job that is interrupted continues with what is missing.
func (d *Directory) readDirectory(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	address := string(j.Args)
	s, err := d.directoryToRead(ctx, address)
	if err != nil || s == nil {
		return nil, err
	}
	got, failed := reading{}, error(nil)
	if s.refused {
		failed = errors.New("this node refuses the host")
	} else {
		ask, cancel := context.WithTimeout(ctx, readFor)
		got, failed = d.fetch(ask, s)
		cancel()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	refused := s.Refused
	if failed == nil && !got.same {
		if refused, err = d.keep(ctx, address, got); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.ARDSources().ByURL(ctx, address)
		if errors.Is(err, storage.ErrNotFound) { // not followed any more
			return nil
		}
		if err != nil {
			return err
		}
		wait := netx.Spread(readEvery, 0.1)
		if s.CheckedAt = tx.Now; failed != nil {
			s.Failures++
			s.LastError = protocol.Clip(protocol.CleanText(failed.Error()), 500)
			wait = max(netx.Jitter(netx.Backoff(readAgain, readEvery, s.Failures)), got.wait)
		} else {
			s.OKAt, s.Failures, s.LastError, s.Refused = tx.Now, 0, "", refused
			if !got.same {
				s.Tag, s.WholeAt = got.tag, tx.Now
			}
		}
		s.NextAt = tx.Now.Add(wait)
		return errors.Join(tx.ARDSources().Put(ctx, s), tx.Enqueue(ctx, directoryJob(address, s.NextAt)))
	}, nil
}

// A toRead is a directory that is to be read.
type toRead struct {
	storage.ARDSource
	refused bool // the operator refuses its host
	whole   bool // whether its tag is the same or not
}

// directoryToRead returns a followed directory, nil where it is not followed.
func (d *Directory) directoryToRead(ctx context.Context, address string) (s *toRead, err error) {
	err = d.House.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.ARDSources().ByURL(ctx, address)
		if err != nil {
			return err
		}
		s = &toRead{ARDSource: *found, whole: tx.Now.Sub(found.WholeAt) > readWhole}
		s.refused, err = tx.Peers().Refused(ctx, s.Host)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return s, err
}

// keep stores what was read of a directory in place of what it had, and returns how many of its entries are not taken.
func (d *Directory) keep(ctx context.Context, address string, got reading) (refused int, err error) {
	refused = got.refused
	var known map[string]string
	taken := map[string]bool{} // hosts, by whether their entries are taken
	if err := d.House.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if known, err = tx.ARDSources().Entries(ctx, address); err != nil {
			return err
		}
		for i := range got.entries {
			for _, host := range hostsOf(&got.entries[i]) {
				if _, ok := taken[host]; !ok {
					if taken[host], err = takes(ctx, tx, host); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	var changed []storage.ARDEntryDoc
	own := protocol.ARDPublisher(d.Base)
	for i := len(got.entries) - 1; i >= 0; i-- { // the last stored is found first
		e := &got.entries[i]
		ok := e.Publisher() != own
		for _, host := range hostsOf(e) {
			ok = ok && taken[host]
		}
		if !ok {
			refused++
			continue
		}
		if e.Source == d.Base || strings.HasPrefix(e.Source, d.Base+"/") { // which only this node can say
			e.Source = ""
		}
		doc, err := storage.NewARDEntryDoc(*e)
		if err != nil {
			return 0, err
		}
		if known[e.Identifier] != doc.Digest {
			changed = append(changed, doc)
		} else {
			delete(known, e.Identifier)
		}
	}
	for _, e := range changed {
		delete(known, e.Identifier)
	}
	gone := make([]string, 0, len(known))
	for identifier := range known {
		gone = append(gone, identifier)
	}
	return refused, d.store(ctx, address, gone, changed)
}

// takes reports whether entries of a publisher or at an address of a host are taken.
func takes(ctx context.Context, tx *storage.Tx, host string) (bool, error) {
	p, err := tx.Peers().PolicyFor(ctx, host)
	return p != storage.PolicyReject && p != storage.PolicySilence, err
}

// hostsOf are the publisher of an entry and the host that it leads to.
func hostsOf(e *protocol.ClaimedEntry) []string {
	hosts := []string{e.Publisher()}
	if u, err := url.Parse(e.URL); err == nil && u.Host != "" {
		hosts = append(hosts, u.Host)
	}
	return hosts
}

// store deletes and writes entries of a directory in parts. It stops when the directory is not followed any more.
func (d *Directory) store(ctx context.Context, address string, gone []string, changed []storage.ARDEntryDoc) error {
	followed := true
	for followed && len(gone)+len(changed) > 0 {
		drop, put := gone[:min(len(gone), entriesOnce)], changed[:min(len(changed), entriesOnce)]
		err := d.House.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if _, err := tx.ARDSources().ByURL(ctx, address); err != nil {
				if followed = !errors.Is(err, storage.ErrNotFound); !followed {
					return nil
				}
				return err
			}
			for _, identifier := range drop {
				if err := tx.ARDSources().DropEntry(ctx, address, identifier); err != nil {
					return err
				}
			}
			for i := range put {
				if _, err := tx.ARDSources().PutEntry(ctx, address, &put[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		gone, changed = gone[len(drop):], changed[len(put):]
	}
	return nil
}
