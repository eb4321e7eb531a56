package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/server"
)

// writes counts the writes to the connections of a listener.
type writes struct {
	net.Listener
	n atomic.Int64
}

func (l *writes) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &writing{c, l}, err
}

type writing struct {
	net.Conn
	of *writes
}

func (c *writing) Write(p []byte) (int, error) {
	c.of.n.Add(1)
	return c.Conn.Write(p)
}

// sized answers with as many bytes as the request has candidates, times a thousand.
type sized struct {
	kvscoutv1connect.UnimplementedScoreServiceHandler
}

func (sized) Score(_ context.Context, req *connect.Request[kvscoutv1.ScoreRequest]) (*connect.Response[kvscoutv1.ScoreResponse], error) {
	n := 1000 * len(req.Msg.GetCandidates())
	return connect.NewResponse(&kvscoutv1.ScoreResponse{Tokens: &kvscoutv1.Tokens{Packed: bytes.Repeat([]byte("ab"), n/2)}}), nil
}

// An answer by Connect over HTTP/1.1 says its length and is one write, however long it is.
func TestConnect_AnswerIsOneWrite(t *testing.T) {
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &writes{Listener: l}
	r := serve(t, counted, 64, func(o *server.Options) { o.Score = sized{} })
	c := client(t, false)
	for _, thousands := range []int{0, 1, 3, 4, 5, 60, 70, 1000} {
		for _, packed := range []bool{false, true} {
			body := encoded(t, &kvscoutv1.ScoreRequest{Candidates: make([]string, thousands)})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(scorePath), bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/proto")
			req.Header.Set("Accept-Encoding", "identity")
			if packed {
				req.Header.Set("Accept-Encoding", "gzip")
			}
			before := counted.n.Load()
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(body)) {
				t.Errorf("%d thousand: status %d, length %d of %d, %v", thousands, resp.StatusCode, resp.ContentLength, len(body), err)
			}
			if n := counted.n.Load() - before; n != 1 {
				t.Errorf("%d thousand, gzip %v: %d writes", thousands, packed, n)
			}
			if resp.Header.Get("Content-Encoding") == "gzip" {
				z, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(z); err != nil {
					t.Fatal(err)
				}
			} else if packed && thousands > 65 {
				t.Errorf("%d thousand: not compressed", thousands)
			}
			out := new(kvscoutv1.ScoreResponse)
			if err := proto.Unmarshal(body, out); err != nil || !bytes.Equal(out.GetTokens().GetPacked(), bytes.Repeat([]byte("ab"), 500*thousands)) {
				t.Errorf("%d thousand: %v, %d bytes", thousands, err, len(out.GetTokens().GetPacked()))
			}
		}
	}
}
