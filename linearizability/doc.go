// Package linearizability records what concurrent clients asked a database and were told, with crashes in between, and proves
// that some order of one operation at a time explains it.
//
// # Two worlds
//
// Simulate runs package engine under the scheduler of package sim, on a simulated disk. Timestamps come from the step
// counter. The power fails in the middle of the clients' work; the next world opens one of the images that the disk could
// have been left in, and the clients go on. In some worlds a sync fails before:
// writes have no reply from then on, and reads must go on from what is durable. One seed decides everything, so that a
// history can be made again.
//
// Serve runs the real server in a process of its own and talks to it over TCP with the official driver; its crashes are
// SIGKILLs. Timestamps are the machine's monotonic clock.
//
// # What an answer means
//
// An operation lies between its call and its reply. One that has no reply when the power fails is unknown: it may have
// happened or not, at any time until recovery ends, and not later, since the process that worked on it is gone. One that
// the client gave up is unknown for ever: it may still happen at any later time. Unknown reads say nothing and are left out.
//
// A client waits for each reply before it asks again, so it is a session: that sessions read their writes is part of what is
// checked.
//
// # Models
//
// Documents: registers and counters. Each document is a partition by itself, unless counts or scans take part: these see one
// snapshot, so the whole collection is one partition then.
//
// Claims: a collection with a unique index. Of several that want a name exactly one gets it. One partition.
//
// Bulk: ordered inserts of many documents. Each document is an operation of its own that may only happen after the one before
// it, within the call of the command; so others see a growing prefix. Counts and scans see one snapshot. One partition.
//
// The checker decides within a time limit or it has failed: what it cannot decide is never taken for right.
package linearizability
