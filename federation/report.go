package federation

import (
	"context"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// sendReport tells the server of a post's author that the operator thinks it should look at the post: a Flag by the node, which
// names nobody who reported it.
func (f *Federation) sendReport(ctx context.Context, j storage.Job) (after, error) {
	var args struct {
		storage.ReportJobArgs
		retryState
	}
	if err := j.Decode(&args); err != nil {
		return nil, err
	}
	var uri, author string
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.Posts().ByID(ctx, args.Post)
		if err != nil || p.State == protocol.Deleted || p.Author.Actor == nil {
			return absent(err)
		}
		uri, author = p.URI, *p.Author.Actor
		return nil
	})
	if err != nil || author == "" { // deleted meanwhile
		return nil, err
	}
	a, err := f.actorOf(ctx, author, actorAge)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err == nil {
		body, wrong := f.site.Report(f.site.Base+"/ap/reports/"+args.ID, author, uri, args.Comment, time.UnixMilli(args.At)).Bytes()
		if wrong != nil {
			return nil, wrong
		}
		err = f.jobResult(f.send(ctx, f.site.Node(), a.Inbox.One(), body))
	}
	if err != nil {
		return f.retry(j, &args.retryState, &args, err)
	}
	return nil, nil
}
