package archive

import (
	"context"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// mostJPEG is the longest picture that fits into a line of an archive.
const mostJPEG = 380 << 10

func (e *exporting) pictures(ctx context.Context) error {
	has, err := e.tx.Pictures().Any(ctx, e.handle)
	if err != nil || !has {
		return err
	}
	return e.member(picturesFile, func(line func(any) error) error {
		return e.tx.Pictures().Each(ctx, e.handle, mostJPEG, func(u storage.PictureUse) error {
			return line(pictureRecord{SKU: u.SKU, Alt: u.Alt, JPEG: u.Body})
		})
	})
}

// pictureStep makes a picture anew, as if its owner had sent it.
func (im *importing) pictureStep(ctx context.Context, r record) (step, error) {
	var p pictureRecord
	if err := im.decode(r, &p); err != nil {
		return step{}, err
	}
	made, err := im.Picture(ctx, p.JPEG)
	if protocol.CodeOf(err) == protocol.Validation {
		err = nil
	}
	return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error {
		if im.report.Profile == kept {
			return nil
		}
		if made == nil {
			im.note("a picture could not be read and was left out")
			return nil
		}
		made.Alt = p.Alt
		err := tx.Pictures().Put(ctx, im.handle, p.SKU, made)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrFull) {
			im.note("a picture was left out: its item is not here, or there is no room")
			return nil
		}
		return err
	}}, err
}
