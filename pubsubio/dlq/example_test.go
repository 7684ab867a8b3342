package dlq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A printQueue is a dead-letter queue of one's own: it prints, at the end of a
// bundle, what the bundle gave up.
type printQueue struct {
	// Prefix begins each line.
	Prefix string
}

func init() { dlq.Register[printQueue]() }

func (q printQueue) Validate() error {
	if q.Prefix == "" {
		return errors.New("printQueue.Prefix: \"\": must not be empty")
	}
	return nil
}

func (q printQueue) Open(context.Context, string) (dlq.Writer, error) {
	return &printer{queue: q}, nil
}

func (printQueue) Close(string) error { return nil }

// A printer is what a printQueue opens.
type printer struct {
	queue   printQueue
	letters []dlq.Letter
}

func (p *printer) Offer(_ context.Context, l dlq.Letter) error {
	p.letters = append(p.letters, l)
	return nil
}

func (p *printer) Flush(context.Context) error {
	for _, l := range p.letters {
		fmt.Printf("%s %s: %s\n", p.queue.Prefix, l.Destination, l.Error)
	}
	p.letters = nil
	return nil
}

func (p *printer) Drop() { p.letters = nil }

// A worker makes the queue anew from JSON, opens it for a bundle, and flushes it at
// the bundle's end.
func Example() {
	travels, err := dlq.EncodeQueue(printQueue{Prefix: "lost for"})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue, err := dlq.DecodeQueue(travels)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	writer, err := queue.Open(ctx, "a transform")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = writer.Offer(ctx, dlq.Letter{
		Destination: "projects/shop/topics/orders",
		Message:     &message.Message{Data: []byte("…")},
		Error:       "it has 101 attributes, the limit is 100",
	})
	if err != nil {
		writer.Drop()
		return
	}
	fmt.Println(writer.Flush(ctx))
	// Output:
	// lost for projects/shop/topics/orders: it has 101 attributes, the limit is 100
	// <nil>
}
