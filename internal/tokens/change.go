package tokens

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix shows scanners of secrets what a token is for.
const prefix = "compactd_"

// minID is how many digits of a hash name a token.
const minID = 8

// ErrUnknown: no token of the file has the id.
var ErrUnknown = errors.New("no token of the file has this id")

// Add makes a token, adds its hash to a file, which is made if there is none, and returns it.
func Add(path string, t Token) (secret string, err error) {
	secret = prefix + rand.Text()
	t.Hash = HashOf(secret)
	if err := t.validate(); err != nil {
		return "", fmt.Errorf("add token: %w", err)
	}
	return secret, change(path, func(text string) (string, error) {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + t.line() + "\n", nil
	})
}

// Remove removes the token whose hash begins with id, 8 digits or more.
func Remove(path, id string) (removed Token, err error) {
	if _, err := os.Stat(path); err != nil {
		return Token{}, fmt.Errorf("remove token %s: %w", id, err)
	}
	err = change(path, func(text string) (string, error) {
		var kept strings.Builder
		found := 0
		for line := range strings.Lines(text) {
			t, err := parse(line)
			if err == nil && t != nil && len(id) >= minID && strings.HasPrefix(t.Hash.String(), strings.ToLower(id)) {
				removed, found = *t, found+1
				continue
			}
			kept.WriteString(line)
		}
		switch found {
		case 0:
			return "", ErrUnknown
		case 1:
			return kept.String(), nil
		}
		return "", fmt.Errorf("%d tokens of the file have an id that begins so", found)
	})
	if err != nil {
		return Token{}, fmt.Errorf("remove token %s: %w", id, err)
	}
	return removed, nil
}

// change replaces a file of tokens, with the mode that it has. The file that it writes keeps a second change out.
func change(path string, edit func(text string) (string, error)) (err error) {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write tokens: %s exists: another change is under way, or has ended halfway; delete it then", next)
	}
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(next) // the first error has the reason
		}
	}()
	err = rewrite(f, path, edit)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// rewrite writes the file that is to replace the one at path.
func rewrite(f *os.File, path string, edit func(text string) (string, error)) error {
	mode, old := fs.FileMode(0o600), []byte(nil)
	info, err := os.Stat(path)
	if err == nil {
		mode = info.Mode().Perm()
		if _, err = Read(path); err == nil { // an error in it is reported now, not by the next start of a worker
			old, err = os.ReadFile(path)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := edit(string(old))
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(mode), f.Sync()); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// syncDir makes a rename last.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
