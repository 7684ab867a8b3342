package main

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// counts is what --stats-addr serves.
type counts struct {
	// Published is the number of messages published, by topic.
	Published map[string]int64
	// Subscriptions is the counts of each subscription.
	Subscriptions map[string]pubsubtest.Stats
	// PublishLoad is what was under way in publish calls at once, over all topics.
	PublishLoad pubsubtest.Load
	// OpenConnections is the connections that are open, MaxConnections the most
	// that ever were.
	OpenConnections, MaxConnections int
}

func countsOf(srv *pubsubtest.Server) counts {
	c := counts{Published: make(map[string]int64), Subscriptions: make(map[string]pubsubtest.Stats), PublishLoad: srv.PublishLoad("")}
	c.OpenConnections, c.MaxConnections = srv.Connections()
	for _, t := range srv.Topics() {
		c.Published[t] = srv.Published(t)
	}
	for _, s := range srv.Subscriptions() {
		c.Subscriptions[s] = srv.Stats(s)
	}
	return c
}

// A statsServer serves counts until it is closed.
type statsServer struct {
	addr    string
	http    *http.Server
	serving sync.WaitGroup
}

func serveStats(srv *pubsubtest.Server, addr string) (*statsServer, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &statsServer{addr: lis.Addr().String(), http: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(countsOf(srv)) // the client may be gone
		}),
	}}
	s.serving.Go(func() { _ = s.http.Serve(lis) }) // ends at close
	return s, nil
}

// close waits until the server has ended.
func (s *statsServer) close() {
	_ = s.http.Close()
	s.serving.Wait()
}
