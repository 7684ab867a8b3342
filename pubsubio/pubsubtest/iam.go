package pubsubtest

import (
	"slices"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
)

// The messages of google.iam.v1.IAMPolicy/TestIamPermissions are on the wire what
// these are: a name and texts, and texts. So the module of that service need not
// be required for one method.
type (
	testPermissionsRequest  = pubsubpb.AcknowledgeRequest // resource, permissions
	testPermissionsResponse = pubsubpb.PublishResponse    // permissions
)

func (s *Server) iamService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "google.iam.v1.IAMPolicy",
		Methods:     []grpc.MethodDesc{unary(s, "TestIamPermissions", atOnce(s.testPermissions))},
	}
}

// testPermissions returns which of the permissions Deny has left; none for a
// resource that does not exist.
func (s *Server) testPermissions(req *testPermissionsRequest) (*testPermissionsResponse, error) {
	resource, resp := req.GetSubscription(), new(testPermissionsResponse)
	if !s.resources.has(resource) {
		return resp, nil
	}
	for _, p := range req.GetAckIds() {
		if !s.orders.deny(p, resource) {
			resp.MessageIds = append(resp.MessageIds, p)
		}
	}
	return resp, nil
}

// A denial is what an order of Deny takes away.
type denial struct {
	permission string
	resources  []string // all if empty
}

func (d *denial) covers(resource string) bool {
	return len(d.resources) == 0 || slices.Contains(d.resources, resource)
}

// deny reports whether an order denies a permission on a resource.
func (os *orders) deny(permission, resource string) bool {
	os.mu.Lock()
	defer os.mu.Unlock()
	return slices.ContainsFunc(os.all, func(o *Order) bool {
		d := o.rule.denial
		return d != nil && d.permission == permission && d.covers(resource)
	})
}
