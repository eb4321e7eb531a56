package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds an answer in bytes. SGLang's /server_info has some ten kilobytes.
const maxAnswer = 4 << 20

// ErrAnswer is an answer that cannot be used.
var ErrAnswer = errors.New("unusable answer")

// errAbsent is a path that the worker does not serve.
var errAbsent = errors.New("not served")

// client asks workers, within a policy.
type client struct {
	http    http.Client
	timeout time.Duration
}

// newClient has no proxy and follows no redirect (invariant 5).
func newClient(p Policy, timeout time.Duration) *client {
	dialer := &net.Dialer{Timeout: timeout, Control: p.Control}
	return &client{timeout: timeout, http: http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// get decodes the answer of base+path into out; nil takes none. It errs with errAbsent, ErrAnswer or what the network
// says.
func (c *client) get(ctx context.Context, base, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrAnswer, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusMethodNotAllowed:
		return fmt.Errorf("%s: %w", path, errAbsent)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: %s: status %d", ErrAnswer, path, res.StatusCode)
	case out == nil:
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("%w: %s: over %d bytes", ErrAnswer, path, maxAnswer)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrAnswer, path, err)
	}
	return nil
}

// parseBase checks a worker's URL and returns it without a trailing slash, and its host.
func parseBase(text string) (base, host string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", "", fmt.Errorf("%w: URL is not http://host:port", ErrWorker)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", fmt.Errorf("%w: URL of %s has more than a host and a path", ErrWorker, u.Host)
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), u.Hostname(), nil
}

// CheckURL says whether a worker can be asked at text. It errs with ErrWorker.
func CheckURL(text string) error {
	_, _, err := parseBase(text)
	return err
}
