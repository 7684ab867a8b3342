package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"google.golang.org/api/option"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// endpoint returns where c's calls go, for texts: a host and a port.
func endpoint(c options.Connection) string {
	return cmp.Or(c.EmulatorEndpoint, c.Endpoint, "pubsub.googleapis.com:443")
}

// dial returns a connection for the few calls of a check. Sources and sinks have
// connections of their own, which are not for a program to use.
func dial(ctx context.Context, c options.Connection) (*grpc.ClientConn, error) {
	if c.EmulatorEndpoint != "" {
		return grpc.NewClient(c.EmulatorEndpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	}
	opts := []option.ClientOption{
		option.WithEndpoint(endpoint(c)),
		option.WithScopes("https://www.googleapis.com/auth/pubsub", "https://www.googleapis.com/auth/cloud-platform"),
		option.WithTelemetryDisabled(),
	}
	if c.ServiceAccountKeyFile != "" {
		key, err := os.ReadFile(c.ServiceAccountKeyFile)
		if err != nil {
			var at *fs.PathError
			if errors.As(err, &at) {
				err = at.Err // without the path
			}
			return nil, fmt.Errorf("--service_account_key_file: it cannot be read: %w", err)
		}
		opts = append(opts, option.WithAuthCredentialsJSON(option.ServiceAccount, key))
	}
	conn, err := gtransport.Dial(ctx, opts...)
	switch {
	case err == nil:
		return conn, nil
	case c.ServiceAccountKeyFile != "":
		// Its text may quote the key.
		return nil, errors.New("--service_account_key_file: it holds no JSON key of a service account")
	default:
		return nil, fmt.Errorf("no credentials to reach Pub/Sub with: %w; log in with gcloud auth application-default login, or give --service_account_key_file", err)
	}
}
