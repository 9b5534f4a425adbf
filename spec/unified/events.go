package unified

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// seen is one event as a test names it: commandStartedEvent {command, commandName, …}.
type seen struct {
	kind  string // command, cmap or sdam
	name  string
	props bson.Raw
}

// recorder keeps the events of one client that its test observes.
type recorder struct {
	observe   map[string]bool
	ignore    map[string]bool // commands
	sensitive bool            // commands that carry secrets are to be seen too

	mu      sync.Mutex
	events  []seen
	started []bson.Raw    // every command, observed or not
	out     int           // connections checked out
	news    chan struct{} // closed with the next event
}

var sensitiveCommands = []string{
	"authenticate", "saslStart", "saslContinue", "getnonce", "createUser", "updateUser", "copydbgetnonce", "copydbsaslstart", "copydb",
}

func (r *recorder) add(kind, name string, props bson.D) {
	raw := document(props)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.observe[name] {
		r.events = append(r.events, seen{kind, name, raw})
		close(r.news)
		r.news = make(chan struct{})
	}
}

// hidden says whether a command's events are not for the test. The driver empties those that carry secrets.
func (r *recorder) hidden(command string, body bson.Raw) bool {
	if r.ignore[command] || command == "configureFailPoint" {
		return true
	}
	if slices.ContainsFunc(sensitiveCommands, func(s string) bool { return strings.EqualFold(s, command) }) {
		return !r.sensitive
	}
	isHello := command == "hello" || strings.EqualFold(command, "isMaster")
	return isHello && !r.sensitive && len(body) <= 5
}

func (r *recorder) commands() *event.CommandMonitor {
	finished := func(e event.CommandFinishedEvent) bson.D {
		return bson.D{
			{Key: "commandName", Value: e.CommandName}, {Key: "databaseName", Value: e.DatabaseName},
			{Key: "hasServiceId", Value: e.ServiceID != nil}, {Key: "hasServerConnectionId", Value: e.ServerConnectionID != nil},
		}
	}
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if r.hidden(e.CommandName, e.Command) {
				return
			}
			r.mu.Lock()
			r.started = append(r.started, slices.Clone(e.Command))
			r.mu.Unlock()
			r.add("command", "commandStartedEvent", bson.D{
				{Key: "command", Value: shown(e.Command)}, {Key: "commandName", Value: e.CommandName}, {Key: "databaseName", Value: e.DatabaseName},
				{Key: "hasServiceId", Value: e.ServiceID != nil}, {Key: "hasServerConnectionId", Value: e.ServerConnectionID != nil},
			})
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			if !r.hidden(e.CommandName, e.Reply) {
				r.add("command", "commandSucceededEvent", append(finished(e.CommandFinishedEvent), bson.E{Key: "reply", Value: shown(e.Reply)}))
			}
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			if !r.hidden(e.CommandName, nil) {
				r.add("command", "commandFailedEvent", finished(e.CommandFinishedEvent))
			}
		},
	}
}

// shown is a command or a reply; of those that carry secrets the driver leaves nothing.
func shown(body bson.Raw) any {
	if len(body) == 0 {
		return bson.D{}
	}
	return body
}

func (r *recorder) pool() *event.PoolMonitor {
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		name := map[string]string{
			event.ConnectionPoolCreated: "poolCreatedEvent", event.ConnectionPoolReady: "poolReadyEvent", event.ConnectionPoolCleared: "poolClearedEvent",
			event.ConnectionPoolClosed: "poolClosedEvent", event.ConnectionCreated: "connectionCreatedEvent", event.ConnectionReady: "connectionReadyEvent",
			event.ConnectionClosed: "connectionClosedEvent", event.ConnectionCheckOutStarted: "connectionCheckOutStartedEvent",
			event.ConnectionCheckOutFailed: "connectionCheckOutFailedEvent", event.ConnectionCheckedOut: "connectionCheckedOutEvent",
			event.ConnectionCheckedIn: "connectionCheckedInEvent",
		}[e.Type]
		r.mu.Lock()
		switch e.Type {
		case event.ConnectionCheckedOut:
			r.out++
		case event.ConnectionCheckedIn:
			r.out--
		}
		r.mu.Unlock()
		props := bson.D{{Key: "hasServiceId", Value: e.ServiceID != nil}, {Key: "interruptInUseConnections", Value: e.Interruption}}
		if e.Reason != "" {
			props = append(props, bson.E{Key: "reason", Value: e.Reason})
		}
		r.add("cmap", name, props)
	}}
}

func (r *recorder) topology() *event.ServerMonitor {
	awaited := func(b bool) bson.D { return bson.D{{Key: "awaited", Value: b}} }
	return &event.ServerMonitor{
		ServerHeartbeatStarted: func(e *event.ServerHeartbeatStartedEvent) {
			r.add("sdam", "serverHeartbeatStartedEvent", awaited(e.Awaited))
		},
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			r.add("sdam", "serverHeartbeatSucceededEvent", awaited(e.Awaited))
		},
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) {
			r.add("sdam", "serverHeartbeatFailedEvent", awaited(e.Awaited))
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			r.add("sdam", "topologyDescriptionChangedEvent", bson.D{
				{Key: "previousDescription", Value: bson.D{{Key: "type", Value: e.PreviousDescription.Kind}}},
				{Key: "newDescription", Value: bson.D{{Key: "type", Value: e.NewDescription.Kind}}},
			})
		},
		TopologyOpening: func(*event.TopologyOpeningEvent) { r.add("sdam", "topologyOpeningEvent", bson.D{}) },
		TopologyClosed:  func(*event.TopologyClosedEvent) { r.add("sdam", "topologyClosedEvent", bson.D{}) },
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			r.add("sdam", "serverDescriptionChangedEvent", bson.D{
				{Key: "previousDescription", Value: bson.D{{Key: "type", Value: e.PreviousDescription.Kind}}},
				{Key: "newDescription", Value: bson.D{{Key: "type", Value: e.NewDescription.Kind}}},
			})
		},
	}
}

// matchEvents compares what a client saw with what it should have seen, in order.
func (m *matcher) matchEvents(want expectedEvents, rec *recorder) error {
	kind := want.Type
	if kind == "" {
		kind = "command"
	}
	rec.mu.Lock()
	var got []seen
	for _, e := range rec.events {
		if e.kind == kind {
			got = append(got, e)
		}
	}
	rec.mu.Unlock()
	if len(got) < len(want.Events) || len(got) > len(want.Events) && !want.Extra {
		var names []string
		for _, e := range got {
			name := e.name
			if c, ok := e.props.Lookup("commandName").StringValueOK(); ok {
				name += "(" + c + ")"
			}
			names = append(names, name)
		}
		return fmt.Errorf("%s saw %d events [%s], want %d", want.Client, len(got), strings.Join(names, " "), len(want.Events))
	}
	for i, w := range want.Events {
		if err := m.matchEvent(fmt.Sprintf("%s, event %d", want.Client, i), w, got[i]); err != nil {
			return err
		}
	}
	return nil
}

// matchEvent compares {name: {property: value}} with an event. Commands and replies may have more fields than are wanted.
func (m *matcher) matchEvent(path string, want bson.Raw, got seen) error {
	elements, err := want.Elements()
	if err != nil {
		return err
	}
	if len(elements) != 1 || elements[0].Key() != got.name {
		return fmt.Errorf("%s: %s, want %s", path, got.name, want)
	}
	props, err := elements[0].Value().Document().Elements()
	if err != nil {
		return err
	}
	for _, p := range props {
		g, _ := got.props.LookupErr(p.Key())
		if err := m.match(path+": "+p.Key(), p.Value(), g, true); err != nil {
			return err
		}
	}
	return nil
}

// count says how many of the events so far are as wanted, and gives a channel that the next one closes.
func (m *matcher) count(rec *recorder, want bson.Raw) (n int, news <-chan struct{}) {
	rec.mu.Lock()
	events := slices.Clone(rec.events)
	news = rec.news
	rec.mu.Unlock()
	for _, e := range events {
		if m.matchEvent("", want, e) == nil {
			n++
		}
	}
	return n, news
}
