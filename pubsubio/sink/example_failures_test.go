package sink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	sink.RegisterResolver(topicOfCountry)
	sink.RegisterEncoder(encodeAmount)
	sink.RegisterHandler(keepForReview)
	register.Function1x0(reviewAmount)
}

// topicOfCountry has a topic for each country, which begins a line.
func topicOfCountry(line string, _ time.Time) (string, error) {
	country, _, ok := strings.Cut(line, " ")
	if !ok {
		return "", errors.New("the line has no country")
	}
	return "projects/shop/topics/orders-" + strings.ToLower(country), nil
}

// A resolver chooses a topic for each record.
func ExampleResolveWith() {
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/orders-fr")
	srv.MustCreateTopic("projects/shop/topics/orders-it")

	p, s := beam.NewPipelineWithRoot()
	lines := beam.Create(s, "FR 12", "IT 7", "FR 3")
	sink.Write(s, sink.Config{
		Resolve:          sink.ResolveWith(topicOfCountry),
		EmulatorEndpoint: srv.Endpoint(),
	}, sink.String, lines)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(srv.Messages("projects/shop/topics/orders-fr")), "for France")
	fmt.Println(len(srv.Messages("projects/shop/topics/orders-it")), "for Italy")
	// Output:
	// 2 for France
	// 1 for Italy
}

// encodeAmount refuses an amount that is not positive.
func encodeAmount(amount int) (*message.Message, error) {
	if amount <= 0 {
		return nil, errors.New("the amount is not positive")
	}
	return &message.Message{Data: fmt.Append(nil, amount)}, nil
}

// review stands for wherever people look at what went wrong.
var review struct {
	sync.Mutex
	lines []string
}

// reviewAmount reads the record of a failure back.
func reviewAmount(f sink.Failed) {
	review.Lock()
	defer review.Unlock()
	amount, err := sink.RecordOf[int](f)
	review.lines = append(review.lines, fmt.Sprint("refused: ", amount, ", error ", err))
}

// What can never be published is emitted, and the rest of the pipeline decides.
func ExampleEmitFailed() {
	review.lines = nil
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/amounts")

	p, s := beam.NewPipelineWithRoot()
	result := sink.Write(s, sink.Config{
		Topic:            "projects/shop/topics/amounts",
		EmulatorEndpoint: srv.Endpoint(),
		OnFailure:        sink.EmitFailed(),
	}, encodeAmount, beam.Create(s, 3, -1, 7))
	beam.ParDo0(s, reviewAmount, result.Failed)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(srv.Messages("projects/shop/topics/amounts")), "published")
	fmt.Println(strings.Join(review.lines, "\n"))
	// Output:
	// 2 published
	// refused: -1, error <nil>
}

func keepForReview(_ context.Context, f sink.Failed) error {
	review.Lock()
	defer review.Unlock()
	_, reason, _ := strings.Cut(f.Error, "encodeAmount: ")
	review.lines = append(review.lines, reason)
	return nil
}

// What can never be published goes to a function of one's own.
func ExampleHandleWith() {
	review.lines = nil
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/amounts")

	p, s := beam.NewPipelineWithRoot()
	sink.Write(s, sink.Config{
		Topic:            "projects/shop/topics/amounts",
		EmulatorEndpoint: srv.Endpoint(),
		OnFailure:        sink.HandleWith(keepForReview),
	}, encodeAmount, beam.Create(s, 3, -1, 7, 0))
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Join(review.lines, "\n"))
	// Output:
	// the amount is not positive
	// the amount is not positive
}
