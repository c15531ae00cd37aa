package credential

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"stoa/identity/directory"
	"stoa/identity/httpsig"
	"stoa/node/out/outbound"
	"stoa/storage"
)

// NewDirectories makes the cache of other hosts' key directories. loopback allows
// directories on this machine.
func NewDirectories(db *storage.DB, client *http.Client, log *slog.Logger, loopback bool) (*directory.Cache, error) {
	guarded := *client
	guarded.Transport = notBlocked{db, client.Transport}
	return directory.New(directory.Config{
		Client: &guarded, Store: directoryStore{db}, Log: log, AllowLoopback: loopback,
		Classify: func(err error) httpsig.Code {
			if _, refused := errors.AsType[*outbound.Refused](err); refused {
				return httpsig.CodeDirectoryAddressRefused
			}
			if errors.Is(err, outbound.ErrBodyTooLarge) {
				return httpsig.CodeDirectoryTooLarge
			}
			return ""
		},
	})
}

// notBlocked refuses requests to hosts that the operator blocked or rejects.
type notBlocked struct {
	db   *storage.DB
	next http.RoundTripper
}

func (t notBlocked) RoundTrip(req *http.Request) (*http.Response, error) {
	var refused bool
	err := t.db.Read(req.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		refused, err = tx.Peers().Refused(ctx, req.URL.Host)
		return err
	})
	if err == nil && refused {
		err = &outbound.Refused{Target: req.URL.Host, Reason: "blocked by the operator"}
	}
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // http.RoundTripper: also on errors
		}
		return nil, err
	}
	return t.next.RoundTrip(req)
}

// directoryStore stores key directories, so that they survive a restart
// (directory.Store).
type directoryStore struct{ db *storage.DB }

func (s directoryStore) Load(ctx context.Context) (records []directory.Record, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.Keys().Directories(ctx)
		records = nil
		for _, d := range all {
			records = append(records, directory.Record{Name: d.Name, Set: d.Keys, FetchedAt: d.FetchedAt, Expires: d.ExpiresAt})
		}
		return err
	})
	return records, err
}

func (s directoryStore) Save(ctx context.Context, name string, set []byte, lifetime time.Duration) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Keys().PutDirectory(ctx, storage.KeyDirectory{Name: name, Keys: set, FetchedAt: tx.Now, ExpiresAt: tx.Now.Add(lifetime)})
	})
}

func (s directoryStore) Remove(ctx context.Context, names []string) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		for _, name := range names {
			if err := tx.Keys().DeleteDirectory(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}
