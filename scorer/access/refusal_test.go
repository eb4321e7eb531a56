package access_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/scorer/access"
)

// begin sends the head of a Score whose body of so many bytes never comes.
func begin(t testing.TB, r *rig, token string, body int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	head := "POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n", head, body); err != nil {
		t.Fatal(err)
	}
	return conn
}

// answered is what comes on a connection.
func answered(t testing.TB, conn net.Conn) answer {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

// Invariant 2: a refusal comes while the body, small or large, has not, over HTTP/1.1 and HTTP/2.
func TestRefusal_WithoutTheBody(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	for _, size := range []int{10, 200 << 10, 8 << 20} {
		if a := answered(t, begin(t, r, "", size)); a.status != http.StatusUnauthorized || a.reason() != "NO_CREDENTIAL" {
			t.Errorf("a body of %d: %+v", size, a)
		}
	}
	never, end := io.Pipe()
	defer end.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/kvscout.v1.IndexService/Clear", never)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Authorization", "Bearer "+scoreToken)
	resp, err := client(t, nil, true).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if a := read(t, resp); a.header.Get("Grpc-Status")+resp.Trailer.Get("Grpc-Status") != "7" { // PERMISSION_DENIED
		t.Errorf("gRPC: %+v, %v", a, resp.Trailer)
	}
}

// Over HTTP/1.1 the connection of a call that may be tried again is kept, and what comes on it is not held up for long by a
// body that does not come.
func TestRefusal_KeepsTheConnection(t *testing.T) {
	r := start(t, access.Options{Limits: access.Limits{Calls: 1}})
	begin(t, r, "", 10)
	under(t, r, 1)
	conn := begin(t, r, "", 2)
	in := bufio.NewReader(conn)
	for i := range 3 {
		if _, err := io.WriteString(conn, "{}"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if a := read(t, resp); a.status != http.StatusTooManyRequests {
			t.Errorf("call %d: %+v", i, a)
		}
		if _, err := io.WriteString(conn, "POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	if a := answered(t, begin(t, r, "", 2)); a.status != http.StatusTooManyRequests {
		t.Errorf("without a body: %+v", a)
	}
}

// So it is when the body has come with the head, time after time (golang/go#68560).
func TestRefusal_KeepsTheConnectionOfAWholeRequest(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	conn := begin(t, r, "", 2)
	in := bufio.NewReader(conn)
	call := "POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if a := read(t, resp); a.status != http.StatusUnauthorized {
			t.Errorf("call %d: %+v", i, a)
		}
		if _, err := io.WriteString(conn, call); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that writes its request whole before it reads anything gets the refusal, however large the request is that a caller may make,
// and keeps its connection. Of a larger one it gets it if it reads meanwhile.
func TestRefusal_IsReadAfterAWholeBody(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	body := make([]byte, 16<<20)
	for name, frame := range map[string]func() []byte{
		"length": func() []byte {
			return append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
		},
		"chunks": func() []byte {
			out := []byte("Transfer-Encoding: chunked\r\n\r\n")
			for part := range slices.Chunk(body[:12<<20], 64<<10) {
				out = append(append(fmt.Appendf(out, "%x\r\n", len(part)), part...), "\r\n"...)
			}
			return append(out, "0\r\n\r\n"...)
		},
	} {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		in := bufio.NewReader(conn)
		call := append([]byte("POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"), frame()...)
		for i := range 3 {
			if _, err := conn.Write(call); err != nil {
				t.Fatalf("%s, call %d: the body cannot be written: %v", name, i, err)
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s, call %d: %v", name, i, err)
			}
			if a := read(t, resp); a.status != http.StatusUnauthorized || a.reason() != "NO_CREDENTIAL" {
				t.Errorf("%s, call %d: %+v", name, i, a)
			}
		}
	}
}

// A client that asks before it sends a body is answered and sends none; its connection is not held for what does not come.
func TestRefusal_OfWhoAsksFirst(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers)})
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := "POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	began := time.Now()
	all, err := io.ReadAll(conn)
	if text := string(all); err != nil || !strings.HasPrefix(text, "HTTP/1.1 401 ") || !strings.Contains(text, "\r\nConnection: close\r\n") {
		t.Errorf("%q, %v", text, err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the connection was held for %v", took)
	}
}
