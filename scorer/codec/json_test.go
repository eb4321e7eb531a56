package codec_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/codec"
)

var jsonCodec = codec.JSON{As: "json"}

// sameAsProtoJSON reads text as a request, here and by protobuf as connect asks it to.
func sameAsProtoJSON(t *testing.T, data []byte) {
	t.Helper()
	var got codec.ScoreRequest
	want := new(kvscoutv1.ScoreRequest)
	err := jsonCodec.Unmarshal(slices.Clone(data), &got)
	wantErr := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, want)
	if (err == nil) != (wantErr == nil) || err == nil && !proto.Equal(&got.ScoreRequest, want) {
		t.Fatalf("%.500q is read as\n%v, %v\nprotobuf reads\n%v, %v", data, &got.ScoreRequest, err, want, wantErr)
	}
	got.Release()
	var batch codec.ScoreBatchRequest
	wantBatch := new(kvscoutv1.ScoreBatchRequest)
	data = slices.Concat([]byte(`{"requests":[{"model":"m"},`), data, []byte(`]}`))
	err = jsonCodec.Unmarshal(slices.Clone(data), &batch)
	wantErr = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, wantBatch)
	if (err == nil) != (wantErr == nil) || err == nil && !proto.Equal(&batch.ScoreBatchRequest, wantBatch) {
		t.Fatalf("the batch %.500q is read as\n%v, %v\nprotobuf reads\n%v, %v", data, &batch.ScoreBatchRequest, err, wantBatch, wantErr)
	}
	batch.Release()
}

// odd are pieces that JSON texts break with, or take another form by.
var odd = []string{"", "null", "\"\"", "{}", "[]", ",", ":", "1e3", "1.0", "-1", "01", "\\u0041", "\"\\u0041\"", "\xff", "\n", " ", "\"x\":1,", "4294967296", "9223372036854775808", "\"7\"", "[1,2", "true", "}", "]", "\"", "é"}

func twistJSON(rng *rand.Rand, data []byte) []byte {
	at := func() int { return rng.IntN(len(data) + 1) }
	switch rng.IntN(5) {
	case 0:
		return data[:at()]
	case 1: // a piece in, or in place of a byte
		i := at()
		return slices.Concat(data[:i], []byte(odd[rng.IntN(len(odd))]), data[min(len(data), i+rng.IntN(2)):])
	case 2: // some part twice
		i, j := at(), at()
		i, j = min(i, j), max(i, j)
		return slices.Concat(data[:j], data[i:])
	case 3:
		return bytes.ReplaceAll(data, []byte("blockHashes"), []byte("block_hashes"))
	default: // one value for another
		i := bytes.IndexByte(data[at()%(len(data)+1):], ':')
		if i < 0 {
			return data
		}
		return slices.Concat(data[:i+1], []byte(odd[rng.IntN(len(odd))]), data[min(len(data), i+2):])
	}
}

func TestJSON_ReadsWhatProtobufReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 6000 {
		data, err := protojson.Marshal(random(rng, new(kvscoutv1.ScoreRequest)))
		if err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 {
			data = bytes.ReplaceAll(data, []byte(`\"`), nil) // more of the plain form
		}
		sameAsProtoJSON(t, data)
		sameAsProtoJSON(t, twistJSON(rng, data))
	}
}

func TestJSON_ReadsEveryForm(t *testing.T) {
	packed := base64.StdEncoding.EncodeToString([]byte{1, 0, 0, 0, 255, 254, 253, 0})
	for _, text := range []string{
		`{"model":"m","tokens":{"packed":"` + packed + `"}}`,
		"\t{ \"model\" :\r\n \"m\" , \"tokens\" : { \"packed\" : \"" + packed + "\" } , \"maxWorkers\" : 3 } ",
		`{"tokens":{"packed":"` + strings.TrimRight(packed, "=") + `"}}`,
		`{"tokens":{"packed":"` + strings.ReplaceAll(packed, "/", "_") + `"}}`,
		`{"tokens":{"packed":"AQ\nAA"}}`, "{\"tokens\":{\"packed\":\"AQ\nAA\"}}", `{"tokens":{"packed":"AQ"}}`, `{"tokens":{"packed":"A==="}}`,
		`{"tokens":{"ids":[1, 2,3 ]}}`, `{"tokens":{"ids":["1",2]}}`, `{"tokens":{"ids":[1e2,2.0]}}`, `{"tokens":{"ids":[1.5]}}`,
		`{"tokens":{"ids":[-1]}}`, `{"tokens":{"ids":[01]}}`, `{"tokens":{"ids":[1,]}}`, `{"tokens":{"ids":[]}}`, `{"tokens":{"ids":[null]}}`,
		`{"tokens":{"ids":[9223372036854775807]}}`, `{"tokens":{"ids":[9223372036854775808]}}`, `{"tokens":{"ids":[1]],"model":"m"}`,
		`{"tokens":{"packed":"","ids":[1]}}`, `{"tokens":null}`, `{"tokens":{}}`, `{"tokens":[]}`, `{"tokens":{"ids":null}}`, `{"tokens":{"other":1}}`,
		`{"tokens":{"ids":[1]},"tokens":{"ids":[2]}}`, `{"tokens":null,"tokens":{"ids":[2]}}`,
		`{"blockHashes":{"blockSize":16,"packed":"` + packed + `","promptTokens":32}}`,
		`{"block_hashes":{"block_size":"16","packed":"` + packed + `"}}`, `{"blockHashes":{"blockSize":16,"block_size":16}}`,
		`{"blockHashes":{},"block_hashes":{}}`, `{"blockHashes":{"blockSize":4294967296}}`, `{"blockHashes":{"blockSize":016}}`,
		`{"candidates":["a","b"]}`, `{"candidates":["a","\u0062"]}`, `{"candidates":"a"}`, `{"candidates":[]}`, `{"candidates":[1]}`,
		"{\"candidates\":[\"\xff\"]}", "{\"model\":\"\x01\"}", `{"model":"é","id":"\ud83d\ude00"}`, `{"model":"\ud83d"}`,
		`{"unknown":{"a":[1,{"b":"]}"}]},"model":"m"}`, `{"unknown":{"a":[1,{"b":"]}"]}},"model":"m"}`, `{"unknown":tru,"model":"m"}`,
		`{"mod\u0065l":"m"}`, `{"model":"m"}x`, `{"model":"m",}`, `{,"model":"m"}`, `{"model" "m"}`, `["model"]`, `"model"`, `{`, ` `, `{}`, `null`,
		`{"role":"ROLE_DECODE","tierWeights":{"device":1},"returnTokens":true,"promptIndex":0,"cacheSalt":"s","model":"m"}`,
		`{"role":"NO_ROLE","model":"m"}`, `{"http_request":{"path":"/v1","body":"e30=","headers":{"a":"b"}},"model":"m"}`,
	} {
		sameAsProtoJSON(t, []byte(text))
	}
	err := jsonCodec.Unmarshal(nil, new(codec.ScoreRequest))
	if err == nil {
		t.Error("nothing was read")
	}
}

func TestJSON_WritesWhatProtobufWrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 6000 {
		var m proto.Message = random(rng, new(kvscoutv1.ScoreResponse))
		if i%2 == 0 {
			m = random(rng, new(kvscoutv1.ScoreBatchResponse))
		}
		got, err := jsonCodec.MarshalAppend([]byte("kept"), m)
		want, wantErr := protojson.Marshal(m)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, protobuf says %v", err, wantErr)
		}
		if err != nil {
			continue
		}
		got, ok := bytes.CutPrefix(got, []byte("kept"))
		if diff := cmp.Diff(parsed(t, want), parsed(t, got)); diff != "" || !ok {
			t.Fatalf("%s\n%s", got, diff)
		}
	}
}

// parsed is JSON as numbers have it in their texts' values.
func parsed(t *testing.T, data []byte) (out any) {
	t.Helper()
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return out
}

func TestJSON_Refuses(t *testing.T) {
	for _, m := range []*kvscoutv1.ScoreResponse{{Warnings: []string{"\xff"}}, {ScoreId: "\xff"}} {
		_, want := protojson.Marshal(m)
		if _, err := jsonCodec.Marshal(m); fmt.Sprint(err) != fmt.Sprint(want) || err == nil {
			t.Errorf("%v: %v, want %v", m, err, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		data, err := protojson.Marshal(random(rng, new(kvscoutv1.ScoreRequest)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(sameAsProtoJSON)
}

// The base64 of prompts is refused wherever the standard library refuses it.
func TestJSON_Base64(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		data := make([]byte, rng.IntN(300))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		text := []byte(base64.StdEncoding.EncodeToString(data))
		if len(text) > 0 && rng.IntN(2) == 0 {
			text[rng.IntN(len(text))] = []byte("=-_ .\x7fé\xffA/+")[rng.IntN(12)]
		}
		sameAsProtoJSON(t, slices.Concat([]byte(`{"tokens":{"packed":"`), text, []byte(`"}}`)))
	}
}
