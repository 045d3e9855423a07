// Package media reads how large inline media are: the dimensions of images, the pages of
// documents. It reads headers, and never a whole picture.
//
//	media.Of(`"data:image/png;base64,iVBORw0KGgo…"`)   // Shape{Width: 1920, Height: 1080}
//
// It makes references to media that are too large to be recorded, and reads them:
//
//	ref, ok := media.Refer(raw)    // "sha256:1f…;type=image/png;bytes=5767168;width=1920;height=1080"
//	data, err := media.ReadJSON(body, 32<<20)
//
// # Terms
//
//   - A shape is the dimensions of an image in pixels, or the pages of a document; the zero
//     value is that of media whose bytes are not at hand, such as a URL.
//   - Of several images the shape is the mean of their sides.
//
// # Guarantees
//
// Functions are pure, and take any input. A shape decodes at most 128 KiB of a string, however
// large it is; a reference decodes all of it, piece by piece.
//
// # Concurrency
//
// Functions may be called at the same time.
//
// # On failure
//
// A medium of another format, cut off, or with a wrong size in its header has the zero
// shape: there is no error.
package media
