// Package storage keeps collections of records and trees of keys in one data file and one log, and loses nothing that it
// acknowledged. It knows bytes, never documents.
//
// # What it promises
//
// Writes have one order. At any crash let S be the writes submitted and D those acknowledged: after recovery the state is
// what a prefix P of that order makes, with D ⊆ P ⊆ S, and each write is in P whole or not at all. P does not depend on how
// often recovery itself is interrupted. A reader sees only what is durable. Damage to bytes that were durable is an error
// that names the place, never a wrong answer. The first failed sync is final: see [ErrFailed].
//
// # The one idea
//
// Group commit has a moment at which no writer is in the middle of anything: when the leader seals the log. The heads of
// all collections at that moment are a consistent cut of the whole database. So each sealed batch is an immutable snapshot, and
// readers, checkpoints, backups and cursors are all "hold a snapshot".
//
//	Write      a ticket (page ids with storage, room in the log): nothing is held, so here is where a write may wait
//	           f: the collections' locks; edits in pages of the write's own, beside everything that others can reach
//	           install, under the gate: log to the open batch, heads to the collections. Cannot fail half-way
//	Wait       the first to wait leads: seal (gate, microseconds) → log → sync → publish the snapshot → wake the others,
//	           hand leadership on. The next batch fills meanwhile
//	Snapshot   an atomic load and a pin
//
// A [Writer] is private: it never changes a page that it did not make, so an error or a panic in the middle of anything is
// undone by forgetting the Writer. Three things may make it run again from the start: its ticket was too small,
// the log had no room prepared, or a checkpoint's seal moved the end of an extent under it (see seal).
//
// Lock order: checkpoint → collections, ascending → gate → pipeline → snapshots → page ids → frames → log.
//
// # Which page is free
//
// Trees and tables are copy-on-write. A page that a write gives up is retired in that write's batch. No snapshot younger
// than the batch reaches it; so it waits on the deadlist of the youngest snapshot that may, and moves on to an older one when
// that dies, if the older one was sealed after the page's birth. When no snapshot is left it is free in memory ([Store.free]); and
// it is written again only when neither of the two published meta pages reaches it, which the allocator's bitmaps say. A
// reader that sits on an old snapshot so holds back just what it can see.
//
// Records are not copied on write, but appended to extents; an extent is free when nothing in it is live any more, and the
// cleaner (clean.go) helps those along that are mostly dead.
//
// Pages live in frames on the heap until a checkpoint has made them durable in the data file. Reads look at frames first,
// then at the mapped file.
//
// # Checkpoint and recovery
//
// A checkpoint writes what one snapshot reaches and no checkpoint has written before, and publishes it by a meta page; see
// [Store.Checkpoint] for the order of its steps. Recovery loads the newest durable meta page's snapshot and replays the log
// after it; see [Open]. Records in the log are physical-logical: puts and deletes on named trees and numbered records, so that
// replay needs to know neither documents nor pages.
//
// # Files
//
//	data      the data file: package page has its layout, head.go the two trees that a checkpoint writes
//	wal-<n>   the log: package wal
//	lock      held while the database is open
package storage
