//go:build contract

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// bufCurl is `buf curl`, to which the server's reflection tells the messages.
type bufCurl struct{ addr, protocol string }

func (b bufCurl) call(t *testing.T, m protoreflect.MethodDescriptor, take int, in ...proto.Message) (out outcome) {
	t.Helper()
	var data []byte
	for _, message := range in {
		text, err := protojson.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		data = append(append(data, text...), '\n')
	}
	args := []string{"curl", "--protocol", b.protocol, "--http2-prior-knowledge", "--data", "@-", "http://" + b.addr + "/" + path(m)}
	if strings.HasPrefix(string(m.FullName()), "grpc.reflection.") { // which tells nothing of itself
		args = append(args, "--schema", schema(t, m.ParentFile()))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".tools", "bin", "buf"), args...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), &errs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: `make .tools/bin/buf` makes it", err)
	}
	answers := json.NewDecoder(stdout)
	for {
		var text json.RawMessage
		if err = answers.Decode(&text); err != nil {
			break
		}
		out.messages = append(out.messages, form{json: true}.decode(t, text, m))
		if len(out.messages) == take {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return out
		}
	}
	fault := cmd.Wait()
	if !errors.Is(err, io.EOF) {
		t.Fatalf("buf curl %s: %v: %s", m.FullName(), err, errs.String())
	}
	if fault == nil {
		return out
	}
	at := bytes.IndexByte(errs.Bytes(), '{')
	if at < 0 {
		t.Fatalf("buf curl %s: %v: %s", m.FullName(), fault, errs.String())
	}
	failed := connectError(t, errs.Bytes()[at:])
	out.code, out.reason = failed.code, failed.reason
	return out
}

func TestBufCurl(t *testing.T) {
	for _, protocol := range []string{"grpc", "grpcweb", "connect"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			walk(t, bufCurl{serve(t), protocol}, nil)
		})
	}
}

// schema is a file with the descriptor of one proto file.
func schema(t *testing.T, file protoreflect.FileDescriptor) string {
	t.Helper()
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(file)}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "schema.binpb")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
