package node

import (
	"context"

	"stoa/storage"
)

// Parts returns the files that have what is long of old posts.
func (a *Admin) Parts(ctx context.Context) ([]storage.Part, error) { return a.DB.Parts(ctx) }

// Detach moves what is long of the posts of a month, as 202601, into its file.
func (a *Admin) Detach(ctx context.Context, month int64, progress storage.Progress) error {
	return a.DB.Detach(ctx, month, owner(), progress)
}

// Reattach moves it back into the database, where it stays.
func (a *Admin) Reattach(ctx context.Context, month int64, progress storage.Progress) error {
	return a.DB.Reattach(ctx, month, owner(), progress)
}
