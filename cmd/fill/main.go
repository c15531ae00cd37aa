// Fill makes a large node for load tests: it fills the database of a node that does
// not run with posts in threads, profiles and contact threads. It is for
// development and no part of stoa.
//
//	go run ./cmd/fill -data data/large/node-a 1m && ./stoa dev --data data/large
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"stoa/storage"
	"stoa/storage/storagetest/fill"
)

func main() {
	data := flag.String("data", "data/dev/node-a", "data `directory` of the node")
	database := flag.String("database", "", "postgres:// `URL` of its database; default SQLite in the data directory")
	base := flag.String("base", "http://127.0.0.1:8080", "public `address` of the node")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: fill [flags] N | posts=N,profiles=M,threads=T,boards=B,items=I,seed=S\n\n"+
			"N posts come with a tenth as many profiles and a twentieth as many contact threads. Numbers may end in k or m.\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config := storage.Config{URL: *database}
	if *database == "" {
		config.Path = filepath.Join(*data, "stoa.db")
	}
	if err := run(ctx, config, *base, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config storage.Config, base, what string) error {
	c, err := fill.Parse(what)
	if err != nil {
		return err
	}
	db, err := storage.Open(ctx, config)
	if err != nil {
		return err
	}
	c.Base = base
	start, told := time.Now(), time.Time{}
	c.Progress = func(what string, done, of int) {
		if time.Since(told) > 2*time.Second || done == of {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d %s, %s\n", done, of, what, time.Since(start).Round(time.Second))
		}
	}
	return errors.Join(fill.Fill(ctx, db, c), db.Close())
}
