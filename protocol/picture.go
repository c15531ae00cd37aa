package protocol

import (
	"strconv"
	"strings"
)

// Pictures of profiles and items, which the node makes anew from what their owners send.

const (
	MaxPictureUpload = 5 << 20 // bytes of a picture that is sent
	MaxPictures      = 500     // of a profile, with its items
)

// PictureEdges are the longest sides in which a picture is kept, in pixels; a smaller picture is kept as it is.
var PictureEdges = [...]int{96, 320, 960}

// PicturePath begins the addresses of pictures.
const PicturePath = "/picture/"

// PictureAddress is the address of another size of a picture of this node.
func PictureAddress(address string, edge int) string {
	before, _ := strings.CutSuffix(address, "-960.jpg")
	return before + "-" + strconv.Itoa(edge) + ".jpg"
}

// OwnPicture is the path of a picture that a node at that base address keeps; false for another address.
func OwnPicture(base, address string) (path string, ok bool) {
	path, ok = strings.CutPrefix(address, base)
	return path, ok && strings.HasPrefix(path, PicturePath) && strings.HasSuffix(path, "-960.jpg")
}

// A Picture is what a profile or an item looks like.
type Picture struct {
	URL    string `json:"url" format:"uri" doc:"JPEG; -320 and -96 are smaller."`
	Alt    string `json:"alt"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// A PictureRef names the picture of a profile, or of an item.
type PictureRef struct {
	Owned
	SKU string `json:"sku,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Of this item; left out: of the profile."`
}

// A PictureInput says whose the picture in the body is, and what it shows.
type PictureInput struct {
	PictureRef
	Alt string `json:"alt,omitempty" line:"true" maxLength:"200" doc:"What it shows, in words, for who does not see it."`
}

var GetPicture = declare[PictureRef, Picture](Operation{
	Name: "get_picture", Title: "See your picture",
	Summary: "The picture of a profile of yours, or of an item of your shop.",
	HTTP:    Route{"GET", "/api/owner/picture", 200}, Doors: HTTP, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: PictureRef{},
})

var PutPicture = declare[PictureInput, Picture](Operation{
	Name: "put_picture", Title: "Send a picture",
	Summary: "Sets the picture of a profile of yours, or of an item of your shop; the file is the body.",
	Description: "JPEG, PNG, WebP or GIF, at most 5 MiB and 24 megapixels (12 of progressive JPEG or 16 bits a colour). The node makes it anew: " +
		"JPEG in three sizes, upright, without what the camera wrote, on white. A profile and its items have at most 500.",
	HTTP: Route{"PUT", "/api/owner/picture", 200}, Doors: HTTP, For: Owners, Upload: MaxPictureUpload, UploadMedia: "image/jpeg, image/png, image/webp, image/gif",
	Access: Session, Scope: ScopeProfile, Codes: []Code{Forbidden, NotFound, Conflict, TooLarge, UnsupportedMediaType, Overloaded},
	Example: PictureInput{Alt: "The shop from the street"},
})

var RemovePicture = declare[PictureRef, None](Operation{
	Name: "remove_picture", Title: "Remove a picture",
	Summary: "Removes the picture of a profile of yours, or of an item of your shop.",
	HTTP:    Route{"DELETE", "/api/owner/picture", 204}, Doors: HTTP, For: Owners, Scope: ScopeProfile, Codes: []Code{Forbidden, NotFound, Conflict},
	Example: PictureRef{},
})
