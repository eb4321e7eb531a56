package plain

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

var testForms = newForms(&Options{
	Paths: []string{"/a.Service/One", "/a.Service/Other"}, Kinds: []string{"application/proto", "application/json"}, MaxBody: 1000,
})

// request is a plain one with these lines more, and without those that begin as one of them does.
func request(more ...string) string {
	lines := []string{"Host: example.com:9470", "Content-Type: application/proto", "Content-Length: 7"}
	var b strings.Builder
	b.WriteString("POST /a.Service/One HTTP/1.1\r\n")
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		replaced := false
		for _, m := range more {
			replaced = replaced || strings.HasPrefix(strings.ToLower(m), strings.ToLower(name)+":")
		}
		if !replaced {
			b.WriteString(line + "\r\n")
		}
	}
	for _, m := range more {
		if !strings.HasSuffix(m, ":-") {
			b.WriteString(m + "\r\n")
		}
	}
	return b.String() + "\r\n"
}

func TestParse_Plain(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Head
	}{
		"least":      {request(), Head{Kind: "application/proto"}},
		"connect-go": {request("User-Agent: connect-go/1.21.1 (go1.26)", "Connect-Protocol-Version: 1", "Accept-Encoding: gzip", "Connect-Timeout-Ms: 250"), Head{Kind: "application/proto", Gzip: true, Timeout: 250 * time.Millisecond}},
		"JSON":       {request("content-type:application/json", "ACCEPT: */*", "Accept-Encoding: br, gzip;q=1 , gzip"), Head{Kind: "application/json", Gzip: true}},
		"caller": {request("Authorization: Bearer x", "X-Request-Id: 7", "Traceparent: 00-1-2-01", "Tracestate: \t a=b ", "Connection: Keep-Alive"),
			Head{Kind: "application/proto", Authorization: "Bearer x", RequestID: "7", TraceParent: "00-1-2-01", TraceState: "a=b"}},
		"no body": {request("Content-Length: 000"), Head{Kind: "application/proto", Length: -7}},
	} {
		var h Head
		n, v := testForms.parse([]byte(c.text+"and more"), &h)
		c.want.Path, c.want.Length = "/a.Service/One", c.want.Length+7
		if v != isPlain || n != len(c.text) || h != c.want {
			t.Errorf("%s: verdict %d, %d of %d bytes, %+v, want %+v", name, v, n, len(c.text), h, c.want)
		}
	}
}

// What net/http must decide is not decided here.
func TestParse_Other(t *testing.T) {
	for name, text := range map[string]string{
		"method":                strings.Replace(request(), "POST", "PUT", 1),
		"path":                  strings.Replace(request(), "/One", "/Two", 1),
		"query":                 strings.Replace(request(), "/One", "/One?x=1", 1),
		"absolute path":         strings.Replace(request(), "/a", "http://example.com/a", 1),
		"version":               strings.Replace(request(), "HTTP/1.1", "HTTP/1.0", 1),
		"two spaces":            strings.Replace(request(), " HTTP", "  HTTP", 1),
		"no host":               request("Host:-"),
		"two hosts":             request("Host: a", "Host: a"),
		"bad host":              request("Host: a b"),
		"no length":             request("Content-Length:-"),
		"two lengths":           request("Content-Length: 7", "Content-Length: 7"),
		"list of lengths":       request("Content-Length: 7, 7"),
		"signed length":         request("Content-Length: +7"),
		"empty length":          request("Content-Length: "),
		"large length":          request("Content-Length: 1001"),
		"very large length":     request("Content-Length: 18446744073709551623"),
		"chunks":                request("Transfer-Encoding: chunked"),
		"chunks in large":       request("TRANSFER-ENCODING: chunked"),
		"other type":            request("Content-Type: text/plain"),
		"type with more":        request("Content-Type: application/json; charset=utf-8"),
		"type in large letters": request("Content-Type: Application/Proto"),
		"no type":               request("Content-Type:-"),
		"compressed":            request("Content-Encoding: gzip"),
		"expects":               request("Expect: 100-continue"),
		"upgrade":               request("Connection: Upgrade", "Upgrade: h2c"),
		"close":                 request("Connection: close"),
		"another origin":        request("Origin: https://example.com"),
		"timeout of nothing":    request("Connect-Timeout-Ms: 0"),
		"timeout no number":     request("Connect-Timeout-Ms: 1.5"),
		"timeout too long":      request("Connect-Timeout-Ms: 1234567890"),
		"newer protocol":        request("Connect-Protocol-Version: 2"),
		"two tokens":            request("Authorization: Bearer a", "Authorization: Bearer b"),
		"two ids":               request("X-Request-Id: a", "X-Request-Id: b"),
		"no token":              request("Authorization:"),
		"space before colon":    request("X-Any : a"),
		"no name":               request(": a"),
		"no colon":              request("X-Any"),
		"folded":                request("X-Any: a", " b"),
		"bare end of line":      request("X-Any: a\nContent-Length: 9"),
		"bare return":           request("X-Any: a\rb"),
		"zero byte":             request("X-Any: a\x00b"),
		"not ASCII":             request("X-Any: \xff"),
		"long":                  request("X-Any: " + strings.Repeat("x", maxHead)),
		"HTTP/2":                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"only ends":             "\r\n\r\n",
	} {
		if _, v := testForms.parse([]byte(text), new(Head)); v != isOther {
			t.Errorf("%s: verdict %d", name, v)
		}
	}
}

// A head that comes byte by byte is waited for as long as it may become a plain one, and no longer.
func TestParse_Unfinished(t *testing.T) {
	text := request("X-Any: a")
	for n := range len(text) {
		if _, v := testForms.parse([]byte(text[:n]), new(Head)); v != unfinished {
			t.Errorf("%q: verdict %d", text[:n], v)
		}
	}
	for _, begin := range []string{"G", "POSTS", "POST /b", "POST /a.Service/One?", "POST /a.Service/Two", "POST /a.Service/One HTTP/1.0", "POST /a.Service/Two HTTP/1.1\r\nHost"} {
		if _, v := testForms.parse([]byte(begin), new(Head)); v != isOther {
			t.Errorf("%q: verdict %d", begin, v)
		}
	}
}

// Invariant 1: what is read as plain, net/http reads the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(request()))
	f.Add([]byte(request("User-Agent: x", "Connect-Timeout-Ms: 12", "Authorization: Bearer x", "Connection: keep-alive")))
	f.Add([]byte(request("Transfer-Encoding: chunked", "X-Any: a\r\n b")))
	f.Add([]byte(request("Content-Length: 7", "content-length:8", "Host: [::1]:80")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Head
		n, v := testForms.parse(b, &h)
		if v != isPlain {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b[:n])))
		if err != nil {
			t.Fatalf("%q is no request: %v", b[:n], err)
		}
		if req.Method != http.MethodPost || req.RequestURI != h.Path || req.URL.Path != h.Path || req.ProtoMajor != 1 || req.ProtoMinor != 1 ||
			req.Close || req.ContentLength != int64(h.Length) || len(req.TransferEncoding) > 0 || len(req.Trailer) > 0 || req.Host == "" && !strings.Contains(strings.ToLower(string(b[:n])), "host:") {
			t.Errorf("%q is %+v for net/http, %+v here", b[:n], req, h)
		}
		for name, got := range map[string]string{
			"Content-Type": h.Kind, "Authorization": h.Authorization, "X-Request-Id": h.RequestID, "Traceparent": h.TraceParent, "Tracestate": h.TraceState,
		} {
			values := req.Header[name]
			if len(values) > 1 || len(values) == 1 && values[0] != got || len(values) == 0 && got != "" {
				t.Errorf("%q: %s is %q for net/http, %q here", b[:n], name, values, got)
			}
		}
		for _, name := range []string{"Content-Encoding", "Expect", "Upgrade", "Te", "Origin"} {
			if len(req.Header[name]) > 0 {
				t.Errorf("%q has %s", b[:n], name)
			}
		}
		if ms := req.Header["Connect-Timeout-Ms"]; (len(ms) > 0) != (h.Timeout > 0) {
			t.Errorf("%q: timeout %v", b[:n], h.Timeout)
		}
		if n > maxHead+len(headEnd) || h.Length > testForms.maxBody {
			t.Errorf("%d bytes of head, %d of body", n, h.Length)
		}
	})
}
