package server_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/server"
)

func TestListen_Unix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(t.Context(), "unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, l, 64)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	c := kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: transport}, "http://socket")
	resp, err := c.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed(17)}}))
	if err != nil || resp.Msg.GetWorkers()[0].GetHeldTokens() != 16 {
		t.Errorf("score: %v, %v", resp, err)
	}
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	over2 := &http.Transport{DialContext: transport.DialContext, Protocols: h2}
	defer over2.CloseIdleConnections()
	for name, c := range map[string]kvscoutv1connect.ScoreServiceClient{
		"grpc":         kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: over2}, "http://socket", connect.WithGRPC()),
		"grpc-web":     kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: transport}, "http://socket", connect.WithGRPCWeb()),
		"connect json": kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: transport}, "http://socket", connect.WithProtoJSON()),
	} {
		resp, err := c.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed(17)}}))
		if err != nil || resp.Msg.GetWorkers()[0].GetHeldTokens() != 16 {
			t.Errorf("score by %s: %v, %v", name, resp, err)
		}
	}
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	out := new(kvscoutv1.ScoreResponse)
	if err := conn.Invoke(t.Context(), kvscoutv1connect.ScoreServiceScoreProcedure, smallScore, out); err != nil || out.GetWorkers()[0].GetHeldTokens() != 64 {
		t.Errorf("score by grpc-go: %v, %v", out, err)
	}
	_ = conn.Close()
	over2.CloseIdleConnections()
	// Somebody answers there: it is not taken away.
	if _, err := server.Listen(t.Context(), "unix://"+path); !errors.Is(err, server.ErrAddress) {
		t.Errorf("a socket in use: %v", err)
	}
	transport.CloseIdleConnections()
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A socket left by a dead process is replaced.
func TestListen_StaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(t.Context(), "unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestListen_Refuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, addr := range []string{"unix://" + file, "unix://relative", "unix://", "tcp://127.0.0.1:0", "nonsense", taken.Addr().String(), "unix:///nowhere/at/all"} {
		if l, err := server.Listen(t.Context(), addr); !errors.Is(err, server.ErrAddress) {
			t.Errorf("%s: %v, want ErrAddress", addr, err)
			if l != nil {
				_ = l.Close()
			}
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "kept" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}
