package transport

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
)

func TestClassify(t *testing.T) {
	live := t.Context()
	ended, cancel := context.WithCancel(live)
	cancel()
	of := func(c codes.Code, text string) error { return status.Error(c, text) }
	for name, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want Class
	}{
		"unavailable":           {live, of(codes.Unavailable, "x"), Retryable},
		"quota":                 {live, of(codes.ResourceExhausted, "x"), Retryable},
		"aborted":               {live, of(codes.Aborted, "x"), Retryable},
		"unknown":               {live, of(codes.Unknown, "x"), Retryable},
		"internal":              {live, of(codes.Internal, "stream terminated by RST_STREAM"), Retryable},
		"cannot encode":         {live, of(codes.Internal, "grpc: error while marshaling: string field contains invalid UTF-8"), Permanent},
		"expired token":         {live, of(codes.Unauthenticated, "x"), Retryable},
		"attempt's deadline":    {live, of(codes.DeadlineExceeded, "context deadline exceeded"), Retryable},
		"server's cancel":       {live, of(codes.Canceled, "x"), Retryable},
		"attempt's own context": {live, context.DeadlineExceeded, Retryable},
		"our cancel":            {ended, of(codes.Canceled, "context canceled"), Ended},
		"our end beside":        {ended, of(codes.PermissionDenied, "x"), Ended},
		"invalid argument":      {live, of(codes.InvalidArgument, "x"), Rejected},
		"not found":             {live, of(codes.NotFound, "x"), Missing},
		"permission":            {live, of(codes.PermissionDenied, "x"), Permanent},
		"two ordering keys":     {live, of(codes.FailedPrecondition, "x"), Permanent},
		"exists":                {live, of(codes.AlreadyExists, "x"), Permanent},
		"unimplemented":         {live, of(codes.Unimplemented, "x"), Permanent},
		"out of range":          {live, of(codes.OutOfRange, "x"), Permanent},
		"data loss":             {live, of(codes.DataLoss, "x"), Permanent},
		"wrapped":               {live, fmt.Errorf("act: %w", of(codes.Unavailable, "x")), Retryable},
		"not of a call":         {live, errors.New("x"), Permanent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Classify(tc.ctx, tc.err); got != tc.want {
				t.Errorf("Classify(%v) = %v, want %v", tc.err, got, tc.want)
			}
		})
	}
}

func TestRemedy_NamesRoleAndPermission(t *testing.T) {
	err := status.Error(codes.PermissionDenied, "User not authorized")
	want := "grant roles/pubsub.publisher (permission pubsub.topics.publish) to the account that the workers run as"
	if got := Remedy(err, iam.Publish); got != want {
		t.Errorf("Remedy = %q, want %q", got, want)
	}
	if got, want := Describe(err), "PermissionDenied: User not authorized"; got != want {
		t.Errorf("Describe = %q, want %q", got, want)
	}
}
