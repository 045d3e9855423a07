package events

// SubjectFiles asks which files a session has read and changed.
const SubjectFiles = "compactd.files"

// FilesPerPage is how many files an answer lists.
const FilesPerPage = 100

// FilesRequest asks for the files of a session.
type FilesRequest struct {
	V       int    `json:"v,omitzero"`
	Tenant  string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Session string `json:"session"`
	Page    int64  `json:"page,omitzero"` // from 1; absent is 1
}

// FilesResponse lists files, the one used last first, as the calls of tools name
// them. Pages belong together when Through and Pages are equal.
type FilesResponse struct {
	V       int     `json:"v"`
	Known   bool    `json:"known"` // false: no turn of the session was taken or parked
	Files   []File  `json:"files"`
	Through Through `json:"through"`
	Page    int64   `json:"page"`
	Pages   int64   `json:"pages"`
	// Unnamed counts files of this page whose path is no longer to be had: the turn
	// that names it has left the log, or the path is longer than 4 KiB.
	Unnamed int64 `json:"unnamed,omitzero"`
}

// FileKind says what a session did with a file.
type FileKind string

// The kinds of files.
const (
	FileRead    FileKind = "read"    // it was read, never changed
	FileChanged FileKind = "changed" // it was changed
)

// File is what a session did with one file.
type File struct {
	Path    string   `json:"path"`
	Kind    FileKind `json:"kind"`
	Turns   [2]int64 `json:"turns"` // first and last turn that use it
	Reads   int64    `json:"reads"`
	Changes int64    `json:"changes"`
	// Restorable: its latest read is whole and still true, so that a compaction that
	// hides it may show it again.
	Restorable bool `json:"restorable"`
}

// Address names the session that is asked about.
func (r *FilesRequest) Address() Address { return Address{r.Tenant, r.Session} }

// DecodeFilesRequest reads the payload of a compactd.files. Its error is an
// [*Invalid].
func DecodeFilesRequest(data []byte) (*FilesRequest, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	a := env.address()
	return &FilesRequest{V: Version, Tenant: a.Tenant, Session: a.Session, Page: env.count("page", 1, MaxNumber)}, env.problems.err()
}
