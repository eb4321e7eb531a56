package hub

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of a model's directory that rendering depends on.
const (
	fileTokenizer  = "tokenizer.json"
	fileConfig     = "tokenizer_config.json"
	fileTemplate   = "chat_template.jinja"
	fileSpecials   = "special_tokens_map.json"
	fileGeneration = "generation_config.json"
	fileModel      = "config.json"
	// fileTekken is Mistral's own form of a tokenizer, which only its own library renders with.
	fileTekken = "tekken.json"
	// dirTemplates has further templates by name.
	dirTemplates = "additional_chat_templates"
)

// limits on the files, in bytes. The largest tokenizer.json known has some 35 MB.
const (
	maxTokenizerFile = 128 << 20
	maxOtherFile     = 16 << 20
	maxTemplates     = 64
)

// What callers match.
var (
	// ErrBadFile: a file is missing, cannot be read, or is not what its name says.
	ErrBadFile = errors.New("bad model files")
	// ErrUnsupported: the files are in order, but it is not known what an engine makes of them. The text names it.
	ErrUnsupported = errors.New("model is not supported in process")
)

// errMissing is a file without which nothing can be rendered.
var errMissing = errors.New("file is missing")

// Files are what was read of a directory, by name. A file that does not exist is absent.
type Files map[string][]byte

// Read reads the files of a directory at once. It errs with ErrBadFile.
func Read(dir string) (Files, error) {
	out, err := read(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	return out, nil
}

func read(dir string) (Files, error) {
	out := make(Files)
	names := []string{fileTokenizer, fileConfig, fileTemplate, fileSpecials, fileGeneration, fileModel, fileTekken}
	more, err := templateNames(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range append(names, more...) {
		limit := int64(maxOtherFile)
		if name == fileTokenizer {
			limit = maxTokenizerFile
		}
		data, err := readFile(filepath.Join(dir, name), limit)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			out[name] = data
		}
	}
	if out[fileTokenizer] == nil {
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, fileTokenizer), errMissing)
	}
	return out, nil
}

// templateNames lists the additional templates, as paths inside of dir.
func templateNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, dirTemplates))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jinja") {
			out = append(out, filepath.Join(dirTemplates, e.Name()))
		}
	}
	if len(out) > maxTemplates {
		return nil, fmt.Errorf("%s has %d templates, at most %d", filepath.Join(dir, dirTemplates), len(out), maxTemplates)
	}
	return out, nil
}

func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: over %d bytes", path, limit)
	}
	return data, nil
}

// Stamp changes when a file of the directory does, as far as names, sizes and times tell.
func Stamp(dir string) string {
	h := sha256.New()
	names := []string{fileTokenizer, fileConfig, fileTemplate, fileSpecials, fileGeneration, fileModel, fileTekken}
	more, err := templateNames(dir)
	if err != nil {
		fmt.Fprintln(h, err)
	}
	for _, name := range append(names, more...) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			fmt.Fprintln(h, name, errors.Is(err, fs.ErrNotExist))
			continue
		}
		fmt.Fprintln(h, name, info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Digest identifies contents and settings: equal digests render alike.
func (f Files) Digest(settings string) string {
	h := sha256.New()
	put := func(b []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	put([]byte(settings))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		put([]byte(name))
		put(f[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
