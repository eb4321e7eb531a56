package contract

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// curl sends exchanges with the program curl.
func curl(addr string) web {
	return func(t *testing.T, e exchange) reply {
		t.Helper()
		dir := t.TempDir()
		head, body := filepath.Join(dir, "head"), filepath.Join(dir, "body")
		if err := os.WriteFile(body, e.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--silent", "--show-error", "--no-buffer", "--max-time", fmt.Sprint(int(patience.Seconds())), "--dump-header", head}
		if e.HTTP2 {
			args = append(args, "--http2-prior-knowledge")
		}
		if e.Method == "POST" {
			args = append(args, "--data-binary", "@"+body)
		}
		for name, value := range e.Header {
			args = append(args, "--header", name+": "+value)
		}
		return transfer(t, exec.Command("curl", append(args, "http://"+addr+e.Path)...), e, head)
	}
}

// transfer runs curl, to its end or until it has written enough frames.
func transfer(t *testing.T, cmd *exec.Cmd, e exchange, head string) reply {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out reply
	buf := make([]byte, 32<<10)
	for err == nil {
		var n int
		n, err = stdout.Read(buf)
		out.Body = append(out.Body, buf[:n]...)
		if e.Frames > 0 && len(frames(out.Body)) >= e.Frames {
			_ = cmd.Process.Kill()
			break
		}
	}
	if fault := cmd.Wait(); fault != nil && err != nil {
		t.Fatalf("curl %s: %v: %s", e.Path, fault, errs.String())
	}
	b, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte("HTTP/2 "), []byte("HTTP/2.0 "), 1) // as net/http reads it
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	if err != nil {
		t.Fatalf("curl %s: %v in %q", e.Path, err, b)
	}
	_ = resp.Body.Close()
	out.Status, out.Header = resp.StatusCode, resp.Header
	return out
}

// sideEffects is whether a method may change something, so that GET is not for it.
func sideEffects(m protoreflect.MethodDescriptor) bool {
	o, _ := m.Options().(*descriptorpb.MethodOptions)
	return o.GetIdempotencyLevel() != descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

func TestCurl(t *testing.T) {
	for name, f := range map[string]form{
		"connect json": {json: true}, "connect proto": {}, "grpc-web proto": {grpc: true}, "grpc-web json": {grpc: true, json: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.send = curl(serve(t))
			walk(t, f, nil)
		})
	}
}

// What changes nothing may be asked by GET, which caches and browsers know how to treat; what changes something may not.
func TestCurl_ConnectGet(t *testing.T) {
	t.Parallel()
	send := curl(serve(t))
	f := form{send: send, get: true}
	post := form{send: send}
	walk(t, either{f, post}, func(t *testing.T, m protoreflect.MethodDescriptor) bool {
		if !streamed(m) && sideEffects(m) && m.Parent().FullName() != "grpc.health.v1.Health" {
			if r := f.send(t, exchange{Method: "GET", Path: "/" + path(m) + "?connect=v1&encoding=json&message=%7B%7D"}); r.Status != http.StatusMethodNotAllowed {
				t.Errorf("%s by GET: HTTP %d", m.FullName(), r.Status)
			}
		}
		return false
	})
}

// either calls by GET what may be, and the rest by POST.
type either struct{ get, post form }

func (e either) call(t *testing.T, m protoreflect.MethodDescriptor, take int, in ...proto.Message) outcome {
	t.Helper()
	if streamed(m) || sideEffects(m) {
		return e.post.call(t, m, take, in...)
	}
	return e.get.call(t, m, take, in...)
}
