package transport

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
)

// Describe returns err as "Code: text": the status of a call without gRPC's own
// preamble, or the text of any other error.
func Describe(err error) string {
	s, ok := status.FromError(err)
	switch {
	case ok && s.Message() == "":
		return s.Code().String()
	case ok:
		return s.Code().String() + ": " + s.Message()
	case errors.Is(err, context.Canceled):
		return codes.Canceled.String()
	default:
		return err.Error()
	}
}

// Remedy says in a clause what mends err, where something does that the code
// alone tells; "" elsewhere. needs is what the call needs.
func Remedy(err error, needs iam.Grant) string {
	switch status.Code(err) {
	case codes.PermissionDenied:
		return fmt.Sprintf("grant %s (permission %s) to the account that the workers run as", needs.Role, needs.Permission)
	case codes.Unauthenticated:
		return "check the credentials of the account that the workers run as"
	case codes.ResourceExhausted:
		return "ask for a higher quota, or send less"
	case codes.Unavailable, codes.DeadlineExceeded:
		return "check that the workers reach the endpoint"
	default:
		return ""
	}
}

// codeNames are the names of gRPC's codes as the service's documentation writes
// them.
var codeNames = [...]string{
	codes.OK: "OK", codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

// CodeName names a code for a counter. One that gRPC does not have is UNKNOWN to its
// clients.
func CodeName(c codes.Code) string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return codeNames[codes.Unknown]
}
