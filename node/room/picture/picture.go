// Package picture is the room of the pictures of profiles and items. What owners send is decoded and encoded anew (make.go): the node
// keeps and shows nothing else of it.
package picture

import (
	"context"
	"errors"
	"io"
	"os"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Pictures is the room. Make it with New.
type Pictures struct {
	Base    string
	DB      *storage.DB
	uploads *hall.Uploads
	making  chan struct{} // one is decoded at a time, which bounds the memory
}

// New makes the room. spool makes a private temporary file that is deleted when it is closed.
func New(h hall.House, spool func() (*os.File, error)) *Pictures {
	return &Pictures{Base: h.Base, DB: h.DB, uploads: hall.NewUploads("picture", spool), making: make(chan struct{}, 1)}
}

// Bind binds the operations of the room.
func (p *Pictures) Bind(t *hall.Table) {
	hall.Bind(t, protocol.GetPicture, p.Get)
	hall.BindFile(t, protocol.PutPicture, p.Put)
	hall.Bind(t, protocol.RemovePicture, p.Remove)
}

func none(in protocol.PictureRef) error {
	if in.SKU != "" {
		return protocol.Errorf(protocol.NotFound, "there is no item %s with a picture", in.SKU)
	}
	return protocol.Errorf(protocol.NotFound, "the profile has no picture; put_picture sets one")
}

// Get is the operation get_picture.
func (p *Pictures) Get(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.PictureRef) (protocol.Picture, error) {
	own, err := hall.Own(ctx, tx, by, in.Owned)
	if err != nil {
		return protocol.Picture{}, err
	}
	found, err := tx.Pictures().Of(ctx, own.Draft.Handle, in.SKU)
	if err != nil {
		return protocol.Picture{}, storage.IfMissing(err, none(in))
	}
	return *found.Public(p.Base), nil
}

// Put is the operation put_picture.
func (p *Pictures) Put(ctx context.Context, by protocol.Caller, in protocol.PictureInput, body io.Reader) (protocol.Picture, error) {
	handle, err := by.ActsAs(in.Handle)
	if err != nil {
		return protocol.Picture{}, err
	}
	f, leave, err := p.uploads.Receive(ctx, by.ID(), body)
	if err != nil {
		return protocol.Picture{}, err
	}
	defer leave()
	defer f.Close()
	made, err := p.make(ctx, f)
	if err != nil {
		return protocol.Picture{}, err
	}
	made.Alt = in.Alt
	if err := p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Pictures().Put(ctx, handle, in.SKU, made) }); err != nil {
		return protocol.Picture{}, refused(in.PictureRef, err)
	}
	return *made.Public(p.Base), nil
}

// make reads a file and makes its picture, one at a time.
func (p *Pictures) make(ctx context.Context, f *os.File) (*storage.PictureFile, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, protocol.MaxPictureUpload))
	if err != nil {
		return nil, err
	}
	return p.Make(ctx, raw)
}

// Make makes a picture, one at a time.
func (p *Pictures) Make(ctx context.Context, raw []byte) (*storage.PictureFile, error) {
	select {
	case p.making <- struct{}{}:
		defer func() { <-p.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return Make(raw)
}

// refused says what the owner can do about an error of storage.
func refused(in protocol.PictureRef, err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFound) && in.SKU != "":
		return protocol.Errorf(protocol.NotFound, "the shop sells no item %s", in.SKU)
	case errors.Is(err, storage.ErrNotFound):
		return protocol.Errorf(protocol.NotFound, "there is no such profile on this node")
	case errors.Is(err, storage.ErrImporting):
		return protocol.Errorf(protocol.Conflict, "an import of this catalog is running; try again when it has ended")
	case errors.Is(err, storage.ErrFull):
		return protocol.Errorf(protocol.Conflict, "a profile and its items have at most %d pictures, and the node has room for so many; remove one first",
			protocol.MaxPictures)
	}
	return err
}

// Remove is the operation remove_picture.
func (p *Pictures) Remove(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.PictureRef) (protocol.None, error) {
	own, err := hall.Own(ctx, tx, by, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	found, err := tx.Pictures().Remove(ctx, own.Draft.Handle, in.SKU)
	if err == nil && !found {
		err = none(in)
	}
	return protocol.None{}, refused(in, err)
}
