package federation

import (
	"context"
	"net/http"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/storage"
)

const (
	// readersAtOnce is how many signed reads are verified concurrently.
	readersAtOnce = 16
	// readerAge is how long a stored reader of a post is remembered in memory.
	readerAge = time.Hour
)

// noteReader remembers which server fetched a post with a signature, so that it can
// be told when the post is hidden or deleted. The signature is checked after the
// answer, since its key may have to be fetched; under load some readers are not
// remembered.
func (f *Federation) noteReader(r *http.Request, post string) {
	if !httpsig.Signed(r.Header) && !cavage.Signed(r.Header) {
		return
	}
	select {
	case f.reads <- struct{}{}:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(forStranger(context.WithoutCancel(r.Context()), f.networkOf(r)), 2*fetchTimeout)
	r = r.Clone(ctx)
	f.noting.Go(func() {
		defer func() { cancel(); <-f.reads }()
		msg, err := httpsig.FromRequest(r, f.target)
		if err != nil {
			return
		}
		actor, err := f.verifySignature(ctx, &msg, &delivery{})
		if err == nil {
			err = f.keepReader(ctx, post, actor)
		}
		if err != nil {
			f.observe("read", hostOf(actor), err)
		}
	})
}

func (f *Federation) keepReader(ctx context.Context, post, actor string) error {
	host, now := hostOf(actor), f.now()
	name := post + " " + host
	if _, ok := f.readers.Get(name, now); ok || f.isLocal(actor) {
		return nil
	}
	err := f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		fresh, err := tx.Posts().PutReader(ctx, post, host, actor)
		if err != nil || !fresh {
			return absent(err)
		}
		return f.grow(ctx, tx, storage.StockReaders)
	})
	if err == nil {
		f.readers.Put(name, struct{}{}, 0, now.Add(readerAge))
	}
	return err
}
