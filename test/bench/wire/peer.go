package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/scorer/bench"
)

// peerServer is Dynamo's standalone indexer, fed over ZMQ by simulated vLLM engines.
type peerServer struct {
	cmd     *exec.Cmd
	address string
	engines []*simulate.Engine
}

// peerModel is the model that test/bench/peers-http serves.
const peerModel = "m"

// peerThreads are the indexer's own, as its authors start it on two cores.
const peerThreads = "2"

func startPeer(ctx context.Context, program string, w *bench.Workload) (*peerServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &peerServer{address: l.Addr().String()}
	_, port, _ := net.SplitHostPort(p.address)
	l.Close() // the program takes the port itself
	p.cmd = exec.CommandContext(ctx, program, port, peerThreads)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.fill(ctx, w); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *peerServer) name() string { return "dynamo" }

func (p *peerServer) pid() int { return p.cmd.Process.Pid }

func (p *peerServer) stop() {
	for _, e := range p.engines {
		_ = e.Close()
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // says that it was killed
}

// fill starts an engine for each worker, and waits until the indexer answers right about every prompt.
func (p *peerServer) fill(ctx context.Context, w *bench.Workload) error {
	up := func() error { return p.post(ctx, "/health", http.MethodGet, nil) }
	if err := eventually(ctx, up); err != nil {
		return err
	}
	for i := range w.Workers {
		e, err := simulate.New(simulate.Config{
			Worker: w.Worker(i), Form: simulate.FormVLLMArray, Model: peerModel, BlockSize: bench.BlockSize,
			Blocks: 2 * len(w.Prompts) * w.Blocks(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			return err
		}
		p.engines = append(p.engines, e)
		worker := map[string]any{
			"instance_id": i + 1, "endpoint": e.Source().Events, "model_name": peerModel, "block_size": bench.BlockSize, "dp_rank": 0,
		}
		if err := p.post(ctx, "/register", http.MethodPost, worker); err != nil {
			return err
		}
	}
	for i, e := range p.engines {
		subscribed := func() error {
			if e.Stats().Subscribers == 0 {
				return fmt.Errorf("the peer does not listen to %s", e.Source().Events)
			}
			return nil
		}
		if err := eventually(ctx, subscribed); err != nil {
			return err
		}
		for n := range w.Prompts {
			if _, err := e.Serve(simulate.Request{Tokens: w.Prompts[n][:w.Held(n, i)]}); err != nil {
				return err
			}
		}
	}
	return p.right(ctx, w)
}

// right waits until the answers are.
func (p *peerServer) right(ctx context.Context, w *bench.Workload) error {
	list, end, err := p.callers(w, cell{kind: lean, callers: 1})
	if err != nil {
		return err
	}
	defer list[0].Close()
	return errors.Join(eventually(ctx, func() error {
		for n := range w.Prompts {
			if err := list[0].Call(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}), end())
}

// eventually waits for do to succeed, at most 30 s.
func eventually(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := do()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *peerServer) post(ctx context.Context, path, method string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.address+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<16)); err != nil || res.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s %.200s %w", path, res.Status, answer, err)
	}
	return nil
}

// callers are lean ones: the peer speaks JSON over HTTP only.
func (p *peerServer) callers(w *bench.Workload, c cell) (list []bench.Caller, end func() error, err error) {
	post := &bench.Post{
		Path: "/query", ContentType: "application/json",
		Dial: bench.Target{Network: "tcp", Address: p.address}.Dial,
		Check: func(i int, answer []byte, wholly bool) error {
			return checkPeer(w, i, answer, wholly)
		},
	}
	for n := range w.Prompts {
		query := map[string]any{"model_name": peerModel}
		switch c.kind {
		case lean:
			query["token_ids"] = w.Prompts[n]
		case leanHashes:
			post.Path = "/query_by_hash"
			var signed []int64
			for _, k := range w.Keys(n) {
				signed = append(signed, int64(k))
			}
			query["block_hashes"] = signed
		default:
			return nil, nil, nil
		}
		body, err := json.Marshal(query)
		if err != nil {
			return nil, nil, err
		}
		post.Bodies = append(post.Bodies, body)
	}
	messages := post.Messages()
	for i := range c.callers {
		list = append(list, bench.NewLean(post, messages, i))
	}
	return list, func() error { return nil }, nil
}

// checkPeer looks for the best worker in the text, or at every worker.
func checkPeer(w *bench.Workload, prompt int, answer []byte, wholly bool) error {
	if !wholly {
		best := w.Best(prompt)
		want := fmt.Appendf(nil, `"%d":{"0":%d}`, best+1, w.Held(prompt, best))
		if !bytes.Contains(answer, want) {
			return fmt.Errorf("%w: no %s", bench.ErrWrong, want)
		}
		return nil
	}
	var got struct{ Scores map[string]map[string]int }
	if err := json.Unmarshal(answer, &got); err != nil {
		return fmt.Errorf("%w: %w", bench.ErrWrong, err)
	}
	if len(got.Scores) != w.Workers {
		return fmt.Errorf("%w: %d workers, want %d", bench.ErrWrong, len(got.Scores), w.Workers)
	}
	for i := range w.Workers {
		if held := got.Scores[strconv.Itoa(i+1)]["0"]; held != w.Held(prompt, i) {
			return fmt.Errorf("%w: worker %d holds %d, want %d", bench.ErrWrong, i, held, w.Held(prompt, i))
		}
	}
	return nil
}
