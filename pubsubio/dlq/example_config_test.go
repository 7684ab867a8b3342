package dlq_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

const (
	deadLetters = "projects/shop/topics/dead-letters"
	letterSub   = "projects/shop/subscriptions/dead-letters"
)

func init() {
	sink.RegisterEncoder(encodeWord)
	beam.RegisterType(reflect.TypeFor[misfit]())
	register.Function2x0(check)
	register.Emitter1[misfit]()
	register.Function1x0(show)
}

// encodeWord refuses what it does not like.
func encodeWord(word string) (*message.Message, error) {
	if word == "unspeakable" {
		return nil, errors.New("no such word")
	}
	return message.New([]byte(word)), nil
}

// A misfit is what a transform of one's own gives up.
type misfit struct {
	Word, Reason string
}

// DeadLetter makes it a dlq.Failure.
func (m misfit) DeadLetter() dlq.Letter {
	return dlq.Letter{Connector: "shop.check", Destination: "the shop window", Message: message.New([]byte(m.Word)), Error: m.Reason}
}

func check(word string, emit func(misfit)) {
	if len(word) > 5 {
		emit(misfit{word, fmt.Sprintf("%d letters are too many", len(word))})
	}
}

// shop starts a server with topics of a shop, dead letters and their subscription.
func shop() *pubsubtest.Server {
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: pubsubtest.Unlimited})
	if err != nil {
		panic(err)
	}
	srv.MustCreateTopic("projects/shop/topics/words")
	srv.MustCreateTopic(deadLetters)
	srv.MustCreateSubscription(letterSub, deadLetters)
	return srv
}

// A sink sends what it can never publish to a topic, and dlq.Write what another
// transform has given up.
func ExampleWrite() {
	srv := shop()
	defer srv.Close()
	beam.Init()

	queue := dlq.Config{Topic: deadLetters, EmulatorEndpoint: srv.Endpoint()}
	p, s := beam.NewPipelineWithRoot()
	words := beam.Create(s, "good", "unspeakable", "short")
	sink.Write(s, sink.Config{
		Topic: "projects/shop/topics/words", EmulatorEndpoint: srv.Endpoint(), OnFailure: sink.SendTo(queue),
	}, encodeWord, words)
	dlq.Write(s, queue, beam.ParDo(s, check, words))
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
		return
	}

	var letters []string
	for _, m := range srv.Messages(deadLetters) {
		e := dlq.Decode(m)
		letters = append(letters, fmt.Sprintf("%s to %s: %s", e.Connector, e.Destination, e.Error))
	}
	slices.Sort(letters)
	for _, l := range letters {
		fmt.Println(l)
	}
	// Output:
	// pubsubio.sink to projects/shop/topics/words: encode a record for projects/shop/topics/words: encoder github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq_test.encodeWord: no such word
	// shop.check to the shop window: 11 letters are too many
}

// A read of the dead letters, whoever has sent them.
func ExampleEntries() {
	srv := shop()
	defer srv.Close()
	beam.Init()
	if _, err := srv.Publish(deadLetters, message.New([]byte("by hand"))); err != nil {
		fmt.Println(err)
		return
	}

	p, s := beam.NewPipelineWithRoot()
	entries := source.Read(s, source.Config{
		Subscriptions: source.From(letterSub), EmulatorEndpoint: srv.Endpoint(), Limit: options.Limit{MaxMessages: 1},
	}, dlq.Entries)
	beam.ParDo0(s, show, entries)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	// Output:
	// foreign: "by hand"
}

func show(e dlq.Entry) { fmt.Printf("%v: %q\n", e.Kind, e.Message.Data) }
