package pubsubtest

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that codec wraps
	"google.golang.org/grpc/mem"
)

// codec is gRPC's own for protocol buffers, except that the requests and
// responses that carry messages are read and written here, in one pass and
// without decoding the messages.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal is for gRPC.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *pullResponse:
		return pooled(v.maxSize(), v.append), nil
	case *publishResponse:
		return pooled(v.n*22, v.append), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal is for gRPC. It keeps nothing of data.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *publishRequest:
		// A copy of its own: the messages stay a part of it.
		return undecodable(v.parse(data.Materialize()))
	case *acknowledgeRequest:
		buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buf.Free()
		return undecodable(v.parse(buf.ReadOnlyData()))
	}
	return c.CodecV2.Unmarshal(data, v)
}

// undecodable names the codec in an error of a request; nil stays nil.
func undecodable(err error) error {
	if err != nil {
		return fmt.Errorf("proto: %w", err)
	}
	return nil
}

// pooled returns what write appends, at most size bytes, in a buffer that gRPC
// gives back when it is sent.
func pooled(size int, write func([]byte) []byte) mem.BufferSlice {
	pool := mem.DefaultBufferPool()
	buf := pool.Get(size)
	*buf = write((*buf)[:0])
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}
}
