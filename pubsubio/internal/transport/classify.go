package transport

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A Class is what the error of a call means for what was asked.
type Class int

const (
	// Permanent: asking again would be answered alike until somebody changes a
	// permission, a setting or the resource.
	Permanent Class = iota
	// Retryable: the same request may succeed later.
	Retryable
	// Rejected: the service refuses something in the request itself. A publish
	// request is refused whole, and the answer names no message.
	Rejected
	// Missing: the topic or the subscription does not exist, or not yet.
	// Whoever may not create it, nor waits for it, treats it as Permanent.
	Missing
	// Ended: no verdict of the service. The caller's own context ended, and
	// with it the call.
	Ended
)

func (c Class) String() string {
	switch c {
	case Retryable:
		return "retryable"
	case Rejected:
		return "rejected"
	case Missing:
		return "missing"
	case Ended:
		return "ended"
	default:
		return "permanent"
	}
}

// Classify says what err, the error of a call, means. It is the one place that
// decides so.
//
// ctx is the context of the whole act, from which that of the attempt was
// derived: once it has ended, so has the act, whatever the call returned. While
// it lives, a Canceled or a DeadlineExceeded comes from the attempt's own
// deadline or from the service, and both may be tried again.
func Classify(ctx context.Context, err error) Class {
	if ctx.Err() != nil {
		return Ended
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Retryable
	}
	s, ok := status.FromError(err)
	if !ok {
		return Permanent // not the error of a call: a fault of ours
	}
	switch s.Code() {
	case codes.InvalidArgument:
		return Rejected
	case codes.NotFound:
		return Missing
	case codes.Internal:
		// gRPC's own refusal to encode or decode: nothing was sent, and the
		// same bytes fail for ever.
		if strings.HasPrefix(s.Message(), "grpc: error while marshaling") || strings.HasPrefix(s.Message(), "grpc: error unmarshalling") {
			return Permanent
		}
		return Retryable // a server's crash, a reset stream
	case codes.Unauthenticated:
		// An expired token, or one that could not be fetched: the next attempt
		// fetches another. A wrong identity is told as PermissionDenied.
		return Retryable
	case codes.Unavailable, // not reachable, overloaded, GOAWAY
		codes.ResourceExhausted, // quota: backpressure is the answer
		codes.Aborted,           // a conflict inside the service
		codes.DeadlineExceeded,  // the attempt's deadline, or the service's
		codes.Canceled,          // by a server or a proxy on its way down
		codes.Unknown:           // what a proxy makes of a broken answer
		return Retryable
	default:
		// PermissionDenied, FailedPrecondition (a key that cannot be used, two
		// ordering keys in a request), AlreadyExists, Unimplemented, OutOfRange,
		// DataLoss.
		return Permanent
	}
}
