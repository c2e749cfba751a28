// Package fleet drives one server from several machines as if they were one
// generator. The controller is the process that sweeps: its Fleet is where a
// load.Driver comes from whose jobs are run by Agents, each with its share of
// the connections. They talk over NATS, of which Broker embeds a server for
// fleets that have none.
//
// # What is said
//
// Every message is JSON with the version of the protocol in it; what is of
// another version is refused. Orders are requests to the subject of one agent,
// answered when they are carried out:
//
//	poolsweep.roll             controller → all agents: who is there? (presence)
//	poolsweep.agent.ID         controller → an agent: orders
//	poolsweep.beat.CONTROLLER  controller → its agents, four times a second
//	poolsweep.pulse.CONTROLLER agents → their controller, four times a second
//
// An agent works for one controller at a time. Its lease ends when the beats
// stop, or when they say a later epoch: then it stops the load, closes its
// connections and waits for the next controller. So nothing needs to be
// delivered for the load to end. The controller takes an agent whose pulses
// stop for lost; what was being measured is void, a new epoch begins and the
// connections are split among the rest.
//
// # One step
//
// setup (what to send, to whom; once a sweep), prepare (open the connections),
// start (a time from now on), await (the window is over), collect (stop the
// load and tell). No clock but the monotonic ones is read: the controller sends
// each agent how long to wait after it reads the order, with half of its round
// trip taken off, so that all begin together. An agent keeps loading after its
// window until it is told to stop, so that the windows of all lie within the
// load of all and their rates add up.
package fleet

import "time"

// Protocol is the version of the messages. Agents and controller must agree.
const Protocol = 1

const (
	rollSubject  = "poolsweep.roll"
	agentSubject = "poolsweep.agent."
	beatSubject  = "poolsweep.beat."
	pulseSubject = "poolsweep.pulse."
)

const (
	// beatEvery is how often controller and agents say that they live.
	beatEvery = 250 * time.Millisecond
	// leaseTime is after how long without a beat an agent stops the load:
	// within the two seconds that are promised.
	leaseTime = 1500 * time.Millisecond
	// lostAfter is after how long without a pulse an agent is lost. It is
	// longer than the lease: a machine that is short of CPU is no lost one.
	lostAfter = 3 * time.Second

	// replyTimeout bounds the wait for an answer that needs no work,
	// connectTimeout for opening the connections of a step, drainTimeout for
	// the last replies of the server and reconnectTimeout for NATS to be back.
	replyTimeout     = 5 * time.Second
	connectTimeout   = time.Minute
	drainTimeout     = 25 * time.Second
	reconnectTimeout = 30 * time.Second
)
