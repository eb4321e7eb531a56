package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// Engines of an ingest: each holds half of its prompts, of stepBlocks blocks. Each step stores one of the others and removes
// the one that was stored first.
const (
	ingestEngines = 4
	enginePrompts = 512
	stepBlocks    = 32
)

// engine publishes over ZMQ what a vLLM engine would, from batches made before: it costs little beside what it feeds.
type engine struct {
	worker   string
	listener net.Listener
	conn     net.Conn // the server's, once it has connected
	prompts  [][]uint32
	batches  [][]byte // by prompt, each with the removal of another one
	next     uint64   // sequence number
	frame    []byte   // of the batch that is sent
}

// newEngine listens on a free port of 127.0.0.1. Prompts of different engines have nothing in common.
func newEngine(worker string, number int) (*engine, error) {
	e := &engine{worker: worker}
	rng := rand.New(rand.NewPCG(uint64(number), 1))
	for range enginePrompts {
		e.prompts = append(e.prompts, randomTokens(rng, stepBlocks*BlockSize))
	}
	for p := range e.prompts {
		payload, err := e.batch(number, p, true)
		if err != nil {
			return nil, err
		}
		e.batches = append(e.batches, payload)
	}
	var err error
	e.listener, err = net.Listen("tcp", "127.0.0.1:0")
	return e, err
}

// batch stores prompt p and removes the one half of all before it, in vLLM's array form.
func (e *engine) batch(number, p int, removing bool) ([]byte, error) {
	hashes := func(p int) (out []uint64) {
		for b := range stepBlocks {
			out = append(out, uint64(number+1)<<48|uint64(p+1)<<16|uint64(b)|1<<63)
		}
		return out
	}
	list := [][]any{{"BlockStored", hashes(p), nil, e.prompts[p], BlockSize, nil, "GPU"}}
	if removing {
		list = append(list, []any{"BlockRemoved", hashes((p + enginePrompts/2) % enginePrompts), "GPU"})
	}
	var out bytes.Buffer
	enc := msgpack.NewEncoder(&out)
	enc.UseCompactInts(true)
	err := enc.Encode([]any{1.5, list})
	return out.Bytes(), err
}

func (e *engine) endpoint() string { return "tcp://" + e.listener.Addr().String() }

// accept waits for the server to connect, and greets it as a ZMTP publisher. It answers no heartbeat later: a server that
// hears of it all the time sends none.
func (e *engine) accept(until time.Time) (err error) {
	if err := e.listener.(*net.TCPListener).SetDeadline(until); err != nil {
		return err
	}
	if e.conn, err = e.listener.Accept(); err != nil {
		return fmt.Errorf("the server did not connect to %s: %w", e.worker, err)
	}
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	ready := "\x05READY" + "\x0bSocket-Type" + "\x00\x00\x00\x03PUB"
	_, err = e.conn.Write(append(append(greeting, 4, byte(len(ready))), ready...))
	return err
}

// fill stores what the engine holds from then on, for publish to begin with prompt 0.
func (e *engine) fill(number int) error {
	for p := enginePrompts / 2; p < enginePrompts; p++ {
		payload, err := e.batch(number, p, false)
		if err != nil {
			return err
		}
		if err := e.send(payload); err != nil {
			return err
		}
	}
	return nil
}

// publish, after fill, sends the next batch and tells which prompt it stores.
func (e *engine) publish() (prompt int, err error) {
	prompt = int((e.next - enginePrompts/2) % enginePrompts)
	return prompt, e.send(e.batches[prompt])
}

// send writes a message of topic, number and payload.
func (e *engine) send(payload []byte) error {
	b := append(e.frame[:0], 1, 2, 'k', 'v', 1, 8) // topic, and the head of the number
	b = binary.BigEndian.AppendUint64(b, e.next)
	b = binary.BigEndian.AppendUint64(append(b, 2), uint64(len(payload)))
	e.frame = append(b, payload...)
	e.next++
	_, err := e.conn.Write(e.frame)
	return err
}

func (e *engine) close() error {
	err := e.listener.Close()
	if e.conn != nil {
		err = errors.Join(err, e.conn.Close())
	}
	return err
}
