package server

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// framePrefix is one byte of flags and four of length.
const framePrefix = 5

// frame is a message as it came or goes, encoded.
type frame struct{ data mem.BufferSlice }

// frameCodec leaves messages encoded.
type frameCodec struct{}

// Name implements encoding.CodecV2.
func (frameCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%T is no frame", v)
	}
	return f.data, nil
}

// Unmarshal implements encoding.CodecV2.
func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("%T is no frame", v)
	}
	data.Ref()
	f.data = data
	return nil
}

// frames is the messages of a call as an HTTP body: each behind its prefix.
type frames struct {
	stream grpc.ServerStream
	prefix [framePrefix]byte
	left   []byte // of prefix
	now    frame  // the message that is read
	reader *mem.Reader
	err    error // that ended the messages

	// Of a stream whose reading can be ended from outside; nil otherwise.
	next  chan frame
	ended chan struct{}
	once  sync.Once
	cause error // of the end of next, once it is closed
}

// pump lets a goroutine read, so that reading can be ended.
func (f *frames) pump(wg *sync.WaitGroup) {
	f.next, f.ended = make(chan frame), make(chan struct{})
	done := f.stream.Context().Done()
	wg.Go(func() { // ended by the end of the call, waited for when the server stops
		defer close(f.next)
		for {
			var got frame
			if f.cause = f.stream.RecvMsg(&got); f.cause != nil {
				return
			}
			select {
			case f.next <- got:
			case <-done:
				got.data.Free()
				f.cause = io.EOF
				return
			}
		}
	})
}

// endReading makes reads fail from now on, as a deadline that has passed does.
func (f *frames) endReading() {
	if f.ended != nil {
		f.once.Do(func() { close(f.ended) })
	}
}

func (f *frames) receive() error {
	if f.next == nil {
		return f.stream.RecvMsg(&f.now)
	}
	select {
	case <-f.ended:
		return os.ErrDeadlineExceeded
	default:
	}
	select {
	case got, ok := <-f.next:
		if !ok {
			return f.cause
		}
		f.now = got
		return nil
	case <-f.ended:
		return os.ErrDeadlineExceeded
	}
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.left) == 0 && (f.reader == nil || f.reader.Remaining() == 0) {
		if f.err != nil {
			return 0, f.err
		}
		f.free()
		if f.err = f.receive(); f.err != nil {
			return 0, f.err
		}
		binary.BigEndian.PutUint32(f.prefix[1:], uint32(f.now.data.Len()))
		f.left = f.prefix[:]
		f.reader = f.now.data.Reader()
	}
	if len(f.left) > 0 {
		n := copy(p, f.left)
		f.left = f.left[n:]
		return n, nil
	}
	return f.reader.Read(p)
}

// free gives back the message that was read.
func (f *frames) free() {
	if f.reader != nil {
		_ = f.reader.Close() // it never fails
		f.reader = nil
	}
	f.now.data.Free()
	f.now.data = nil
}

// Close implements io.Closer. The call's end closes what there is to close.
func (f *frames) Close() error { return nil }

// grpcWriter turns what a handler answers into a call's messages and its status.
type grpcWriter struct {
	stream grpc.ServerStream
	body   *frames
	header http.Header
	code   int // HTTP status, 0 before it is said
	sent   bool
	part   []byte // of a message, its prefix first
	err    error  // of the first send that failed
}

// Header implements http.ResponseWriter.
func (w *grpcWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *grpcWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

var errFrame = errors.New("answer is no gRPC message")

// Write implements http.ResponseWriter. A message is sent once it is whole.
func (w *grpcWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.err != nil || w.code != http.StatusOK {
		return len(p), w.err // the text of an HTTP error is for nobody
	}
	w.part = append(w.part, p...)
	for len(w.part) >= framePrefix {
		n := int(binary.BigEndian.Uint32(w.part[1:]))
		if w.part[0] != 0 {
			w.err = errFrame
			return 0, w.err
		}
		if len(w.part)-framePrefix < n {
			break
		}
		if w.err = w.send(w.part[framePrefix : framePrefix+n]); w.err != nil {
			return 0, w.err
		}
		w.part = append(w.part[:0], w.part[framePrefix+n:]...)
	}
	return len(p), nil
}

func (w *grpcWriter) send(message []byte) error {
	if err := w.sendHeader(); err != nil {
		return err
	}
	return w.stream.SendMsg(&frame{mem.BufferSlice{mem.Copy(message, buffers)}})
}

// sendHeader sets the headers of the answer, once.
func (w *grpcWriter) sendHeader() error {
	if w.sent {
		return nil
	}
	w.sent = true
	md := fromHeader(w.header, "")
	if len(md) == 0 {
		return nil
	}
	return w.stream.SetHeader(md)
}

// Flush implements http.Flusher. Messages wait for nothing.
func (w *grpcWriter) Flush() {}

// SetReadDeadline ends reading if the time has passed; calls that may not last have their own end.
func (w *grpcWriter) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && time.Now().After(t) {
		w.body.endReading()
	}
	return nil
}

// SetWriteDeadline does nothing: a call that may not last has its own end.
func (w *grpcWriter) SetWriteDeadline(time.Time) error { return nil }

// end is the status of the call, after its handler has returned.
func (w *grpcWriter) end() error {
	if w.code != 0 && w.code != http.StatusOK {
		return status.Error(codeOfHTTP(w.code), http.StatusText(w.code))
	}
	if _, refused := status.FromError(w.body.err); refused && w.body.err != nil {
		return w.body.err // grpc-go's own: too large, too late, or gone
	}
	w.declared()
	if err := w.sendHeader(); err != nil {
		return err
	}
	said := w.header.Get(http.TrailerPrefix + "Grpc-Status")
	code, err := strconv.ParseUint(said, 10, 32)
	if err != nil {
		return status.Error(codes.Internal, "answer without a status")
	}
	w.stream.SetTrailer(fromHeader(w.header, http.TrailerPrefix))
	if code == 0 {
		return nil
	}
	if details, err := base64.RawStdEncoding.DecodeString(w.header.Get(http.TrailerPrefix + "Grpc-Status-Details-Bin")); err == nil && len(details) > 0 {
		full := new(spb.Status)
		if proto.Unmarshal(details, full) == nil {
			return status.ErrorProto(full)
		}
	}
	text := w.header.Get(http.TrailerPrefix + "Grpc-Message")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return status.Error(codes.Code(code), text)
}

// declared gives trailers that were declared, as those of refusals are, the form of the others.
func (w *grpcWriter) declared() {
	for _, list := range w.header["Trailer"] {
		for key := range strings.SplitSeq(list, ",") {
			key = http.CanonicalHeaderKey(strings.TrimSpace(key))
			if values, ok := w.header[key]; ok {
				w.header[http.TrailerPrefix+key] = values
				delete(w.header, key)
			}
		}
	}
}

// codeOfHTTP is the code that gRPC clients take an HTTP status for.
func codeOfHTTP(code int) codes.Code {
	switch code {
	case http.StatusBadRequest:
		return codes.Internal
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.Unimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codes.Unavailable
	default:
		return codes.Unknown
	}
}

const binarySuffix = "-bin" // of metadata that HTTP carries in base64 and grpc-go as it is

func setHeader(h http.Header, name string, values []string) {
	key := http.CanonicalHeaderKey(name)
	if !strings.HasSuffix(name, binarySuffix) {
		h[key] = values
		return
	}
	for _, v := range values {
		h.Add(key, base64.RawStdEncoding.EncodeToString([]byte(v)))
	}
}

// fromHeader is the headers with a prefix as metadata, or with an empty prefix those without, less what grpc-go says itself.
func fromHeader(h http.Header, prefix string) metadata.MD {
	var md metadata.MD
	for key, values := range h {
		name, ok := strings.CutPrefix(key, prefix)
		if name = strings.ToLower(name); !ok || prefix == "" && strings.HasPrefix(key, http.TrailerPrefix) ||
			strings.HasPrefix(name, "grpc-") || name == "content-type" || name == "trailer" {
			continue
		}
		for _, v := range values {
			if strings.HasSuffix(name, binarySuffix) {
				raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
				if err != nil {
					continue
				}
				v = string(raw)
			}
			if md == nil {
				md = make(metadata.MD)
			}
			md.Append(name, v)
		}
	}
	return md
}
