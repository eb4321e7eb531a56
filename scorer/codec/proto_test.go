package codec_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/codec"
)

// sameAsProto reads bytes as a request and as a batch, here and by protobuf.
func sameAsProto(t *testing.T, data []byte) {
	t.Helper()
	var one codec.ScoreRequest
	wantOne := new(kvscoutv1.ScoreRequest)
	wantErr := proto.Unmarshal(data, wantOne)
	same(t, codec.Proto{}.Unmarshal(slices.Clone(data), &one), wantErr, &one.ScoreRequest, wantOne)
	one.Release()
	var parted codec.ScoreRequest
	same(t, codec.Proto{}.UnmarshalParts(cut(slices.Clone(data)), &parted), wantErr, &parted.ScoreRequest, wantOne)
	parted.Release()
	var stream codec.ScoreStreamRequest
	wantStream := new(kvscoutv1.ScoreStreamRequest)
	same(t, codec.Proto{}.Unmarshal(slices.Clone(data), &stream), proto.Unmarshal(data, wantStream), &stream.ScoreStreamRequest, wantStream)
	stream.Release()
	var batch codec.ScoreBatchRequest
	wantBatch := new(kvscoutv1.ScoreBatchRequest)
	same(t, codec.Proto{}.Unmarshal(slices.Clone(data), &batch), proto.Unmarshal(data, wantBatch), &batch.ScoreBatchRequest, wantBatch)
	batch.Release()
}

// cut cuts bytes into parts, where their sum says.
func cut(data []byte) (parts [][]byte) {
	sum := 0
	for _, b := range data {
		sum += int(b)
	}
	for len(data) > 0 {
		n := min(len(data), sum%(2*len(data)))
		parts, data, sum = append(parts, data[:n]), data[n:], sum/2+1
	}
	return parts
}

func same(t *testing.T, err, wantErr error, got, want proto.Message) {
	t.Helper()
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, protobuf says %v", err, wantErr)
	}
	if err == nil && !proto.Equal(got, want) {
		t.Fatalf("read\n%v\nprotobuf reads\n%v", got, want)
	}
}

func TestProto_ReadsWhatProtobufReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 6000 {
		data, err := proto.Marshal(random(rng, new(kvscoutv1.ScoreRequest)))
		if rng.IntN(3) == 0 {
			data, err = proto.Marshal(random(rng, new(kvscoutv1.ScoreBatchRequest)))
		}
		if rng.IntN(5) == 0 {
			data, err = proto.Marshal(random(rng, new(kvscoutv1.ScoreStreamRequest)))
		}
		if err != nil {
			t.Fatal(err)
		}
		sameAsProto(t, data)
		sameAsProto(t, twist(rng, data))
	}
}

func TestProto_WritesWhatProtobufWrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 6000 {
		var m proto.Message
		switch i % 3 {
		case 0:
			m = random(rng, new(kvscoutv1.ScoreResponse))
		case 1:
			m = random(rng, new(kvscoutv1.ScoreBatchResponse))
		default:
			m = random(rng, new(kvscoutv1.ScoreStreamResponse))
		}
		want, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		prefix := []byte("kept")
		got, err := codec.Proto{}.MarshalAppend(slices.Clone(prefix), m)
		if err != nil || !bytes.Equal(got, append(prefix, want...)) {
			t.Fatalf("%T: %v\n%x\nprotobuf writes\n%x\n%v", m, err, got, want, m)
		}
	}
}

// What is no text is refused as protobuf refuses it, and so is what is no message.
func TestProto_Refuses(t *testing.T) {
	bad := "\xff"
	for _, m := range []*kvscoutv1.ScoreResponse{
		{Warnings: []string{bad}}, {Workers: []*kvscoutv1.WorkerScore{{WorkerId: bad}}}, {ScoreId: bad},
	} {
		_, want := proto.Marshal(m)
		if _, err := (codec.Proto{}).Marshal(m); err == nil || err.Error() != want.Error() {
			t.Errorf("%v: %v, want %v", m, err, want)
		}
	}
	if _, err := (codec.Proto{}).Marshal(1); err == nil {
		t.Error("a number was written")
	}
	if err := (codec.Proto{}).Unmarshal(nil, 1); err == nil {
		t.Error("a number was read")
	}
}

// The transport uses its buffer again as soon as a message is read; a released message's memory goes to the next.
func TestProto_KeepsNothingOfTheBuffer(t *testing.T) {
	req := &kvscoutv1.ScoreRequest{
		Model: "m", CacheSalt: "salt", Candidates: []string{"w0", "w1"}, Tokens: &kvscoutv1.Tokens{Packed: binary.LittleEndian.AppendUint64(nil, 7)},
	}
	data, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var first, second codec.ScoreRequest
	if err := (codec.Proto{}).Unmarshal(data, &first); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if !proto.Equal(&first.ScoreRequest, req) {
		t.Errorf("read %v, want %v", &first.ScoreRequest, req)
	}
	other, err := proto.Marshal(&kvscoutv1.ScoreRequest{Candidates: []string{"w2"}, Tokens: &kvscoutv1.Tokens{Packed: make([]byte, 8)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (codec.Proto{}).Unmarshal(other, &second); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&first.ScoreRequest, req) {
		t.Errorf("another request changed the first into %v", &first.ScoreRequest)
	}
}

// A message in parts is copied once, so that its prompt lies where words of 8 bytes can be read, and keeps nothing of the parts.
func TestProto_PartsAreCopiedOnce(t *testing.T) {
	prompt := make([]byte, 64<<10)
	for i := range prompt {
		prompt[i] = byte(i * i >> 8)
	}
	for n := range 20 {
		model := strings.Repeat("m", n)
		for _, req := range []*kvscoutv1.ScoreRequest{
			{Model: model, Tokens: &kvscoutv1.Tokens{Packed: prompt}},
			{Model: model, BlockHashes: &kvscoutv1.BlockHashes{BlockSize: 16, Packed: prompt}},
		} {
			data, err := proto.Marshal(req)
			if err != nil {
				t.Fatal(err)
			}
			parts := [][]byte{data[:16<<10], data[16<<10 : 40000], data[40000:]}
			var got codec.ScoreRequest
			if err := (codec.Proto{}).UnmarshalParts(parts, &got); err != nil {
				t.Fatal(err)
			}
			clear(data)
			if !proto.Equal(&got.ScoreRequest, req) {
				t.Fatalf("model of %d bytes: read\n%v", n, &got.ScoreRequest)
			}
			packed := got.GetTokens().GetPacked()
			if packed == nil {
				packed = got.GetBlockHashes().GetPacked()
			}
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(packed))); at%8 != 0 {
				t.Errorf("model of %d bytes: the prompt lies at %x", n, at)
			}
			got.Release()
		}
	}
}

func FuzzProto(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		data, err := proto.Marshal(random(rng, new(kvscoutv1.ScoreRequest)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(sameAsProto)
}
