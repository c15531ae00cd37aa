package storage_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"stoa/storage"
)

// A write and the work that follows from it commit together.
func ExampleDB_Write() {
	dir, _ := os.MkdirTemp("", "stoa")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := storage.Open(ctx, storage.Config{Path: filepath.Join(dir, "stoa.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	err = db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enqueue(ctx, storage.Job{Kind: storage.PruneJob, Lane: "prune", Dedupe: string(storage.PruneJob) + " board", RunAt: tx.Now})
	})
	fmt.Println(err)
	err = db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		jobs, err := tx.Jobs().Named(ctx, storage.PruneJob)
		fmt.Println(len(jobs))
		return err
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// 1
	// <nil>
}
