package source

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// pull opens the stream and accepts messages until it ends. brought says whether
// any response came; a trusted stream counts as open before.
//
// When ctx ends, the service is asked to end the stream, and what is on its way
// until then is returned: nobody else gets it before its lease is over. So a
// stream is cut off only while it opens, before anything was asked for.
func (s *stream) pull(ctx context.Context, trusted bool) (brought bool, err error) {
	r := s.reader
	alive, cut := context.WithCancelCause(r.ctx)
	defer cut(nil)
	opening := context.AfterFunc(ctx, func() { cut(nil) }) // Opening a stream may take for ever.
	client, err := r.calls.pull(alive)                     //nolint:contextcheck // it outlives ctx by a moment
	if stopped := !opening(); err != nil || stopped {
		return false, cmp.Or(err, ctx.Err())
	}
	s.pulse.opened()
	lease := r.leasePeriod()
	s.first = proto.Clone(s.first).(*pubsubpb.StreamingPullRequest)
	s.first.StreamAckDeadlineSeconds = int32(lease / time.Second)
	if r.perKey() {
		s.first.ClientId = uuid.NewString() // See order.go.
	}
	var way transit
	var keeper sync.WaitGroup
	keeper.Go(func() { s.attend(ctx, alive, client, cut) })
	defer func() { cut(nil); keeper.Wait() }()

	if trusted {
		r.streamWorks(s)
	}
	defer r.streamEnds(s)
	for {
		full := time.Now()
		r.waitForRoom(ctx)
		asked := time.Now()
		if err := s.recv(client); err != nil {
			if errors.Is(context.Cause(alive), errSilent) { //nolint:contextcheck // it is no new one
				err = errSilent
			}
			return brought, err
		}
		if !brought {
			brought = true
			r.streamBrings(s)
		}
		if err := r.refuses(s.response.properties); err != nil {
			r.setFailure(err)
		}
		granted := grant{period: lease, waited: way.pulled(asked.Sub(full), time.Since(asked), lease)}
		if ctx.Err() == nil {
			r.accept(ctx, s.response.messages, granted)
		} else {
			r.acceptLate(s.response.messages, granted)
		}
		s.response.reset() // The next may be long in coming.
	}
}

// recv reads the next response.
func (s *stream) recv(client pubsubpb.Subscriber_StreamingPullClient) error {
	s.pulse.receiving.Store(true)
	defer s.pulse.receiving.Store(false)
	err := client.RecvMsg(&s.response)
	if errors.Is(err, io.EOF) {
		// No failure, but no reason to read no more either.
		err = status.Error(codes.Unavailable, "the service ended the stream without an error")
	}
	if err == nil {
		s.pulse.received(len(s.response.messages))
	}
	return err
}

// waitForRoom returns once the buffers of the read have room and this reader has
// settled enough of what it holds, or when ctx ends. The service keeps
// MaxOutstandingMessages by itself; Google's emulator does not, so the reader
// does.
func (r *reader) waitForRoom(ctx context.Context) {
	for {
		room, answer := r.group.gate.opened.changed(), r.group.changed.changed()
		if r.group.gate.isOpen() && !r.saturated() {
			return
		}
		r.holdBack(1)
		select {
		case <-room:
		case <-answer:
		case <-ctx.Done():
		}
		r.holdBack(-1)
		if ctx.Err() != nil {
			return
		}
	}
}

// holdBack notes that a stream waits for room, or no longer does: what came meanwhile
// is still to be read.
func (r *reader) holdBack(streams int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heldBack += streams
	r.wm.active = now
}

// attend sends what is to be sent on a stream: the first request, then pings, and
// when ctx ends it hangs up. It cuts off a stream that has died, or that the service
// does not end once it was hung up. It ends with alive, the stream's context, or
// where nothing can be sent: Recv has the reason. pull waits for it.
func (s *stream) attend(ctx, alive context.Context, client pubsubpb.Subscriber_StreamingPullClient, cut context.CancelCauseFunc) {
	tick := time.NewTicker(pingTimeout)
	defer tick.Stop()
	if client.Send(s.first) != nil {
		return
	}
	heard := uint64(unheard)
	for n := 1; ; n++ { // A ping, and at the tick after it a look for the answer.
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = client.CloseSend()
			if gax.Sleep(alive, s.reader.hangUpTimeout()) == nil {
				cut(nil)
			}
			return
		case <-alive.Done():
			return
		}
		switch {
		case n%int(pingInterval/pingTimeout) == 0:
			heard = s.pulse.ask()
			if client.Send(new(pubsubpb.StreamingPullRequest)) != nil {
				return
			}
		case n == 1:
			s.reader.streamBrings(s) // It has lasted.
		case s.pulse.dead(heard):
			cut(errSilent)
			return
		}
	}
}

// hangUpTimeout is how long the service may take to end a stream that is to be
// closed: half of what closing the reader may take, as what came until then is
// returned in the other half.
func (r *reader) hangUpTimeout() time.Duration { return r.config.Subscriber.ShutdownTimeout / 2 }

// warn logs on the default logger, which Beam sends to the runner.
func warn(text string, args ...any) { slog.Warn("source: "+text, args...) }
