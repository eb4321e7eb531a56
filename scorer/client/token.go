package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// ErrToken is a bearer token that cannot be had.
var ErrToken = errors.New("no bearer token")

// authorized adds the bearer token to each request.
type authorized struct {
	next  http.RoundTripper
	token func(context.Context) (string, error)
}

// RoundTrip sends the request with the token.
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.token == nil {
		return a.next.RoundTrip(req)
	}
	token, err := a.token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must
		}
		return nil, connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("%w: %w", ErrToken, err))
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(req)
}

// tokenFileFresh is how long a token that was read is used without a look at its file.
const tokenFileFresh = time.Second

// maxToken bounds the file of a token.
const maxToken = 64 << 10

// TokenFile returns a source for Options.Token: the text of a file without the space around it, read again within a second
// of its change. While a file that was read once cannot be read, its last token is used.
func TokenFile(path string) func(context.Context) (string, error) {
	f := &tokenFile{path: path}
	return f.get
}

type tokenFile struct {
	path string

	mu    sync.Mutex // guards token and read
	token string
	read  time.Time
}

func (f *tokenFile) get(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token != "" && time.Since(f.read) < tokenFileFresh {
		return f.token, nil
	}
	token, err := readToken(f.path)
	if err != nil && f.token == "" {
		return "", err
	}
	if err == nil {
		f.token = token
	}
	f.read = time.Now()
	return f.token, nil
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxToken {
		return "", fmt.Errorf("%s is no file of at most %d bytes", path, maxToken)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n\x00") {
		return "", fmt.Errorf("%s holds no token", path)
	}
	return token, nil
}
