package main

import (
	"context"
	"fmt"

	"stoa/node"
	"stoa/protocol"
)

type adminShopCmd struct {
	Put shopPutCmd `cmd:"" help:"Write the merchant record of a business from JSON on standard input or in a file."`
	Get shopGetCmd `cmd:"" help:"Print the merchant record of a business as it was written."`
}

type shopPutCmd struct {
	Handle string `arg:""`
	File   string `arg:"" optional:"" help:"JSON file; - or nothing reads standard input."`
}

func (c *shopPutCmd) Run(w *world, all *adminCmd) error {
	raw, err := readInput(w, c.File)
	if err != nil {
		return err
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		r, err := putMerchant(ctx, a, c.Handle, raw)
		if err != nil {
			return err
		}
		return all.line(w, "done", fmt.Sprintf("%s %s/api/public/merchants/%s", plural(len(r.Record.Items), "item"), a.Base, r.Handle))
	})
}

// putMerchant writes the merchant record of a business from JSON.
func putMerchant(ctx context.Context, a *node.Admin, handle string, raw []byte) (r protocol.MerchantRecord, err error) {
	in, err := members(raw, "record")
	if err != nil {
		return r, err
	}
	in["handle"] = handle
	return r, a.Operate(ctx, protocol.PutMerchant.Operation, in, &r)
}

type shopGetCmd struct {
	Handle string `arg:""`
}

func (c *shopGetCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.GetMerchantRecord, protocol.Owned{Handle: c.Handle}, func(r protocol.MerchantRecord) error {
		return printJSON(w.stdout, r.Record)
	})
}
