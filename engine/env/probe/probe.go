// Package probe counts how often the engine comes to its rare places, so that a simulation can say which of them its seeds
// have reached: a mechanism that no seed comes to is not tested, however green the seeds are.
//
// A probe is one line where the rare thing happens: probe.LeaderHandedOn.Hit(). In production it is a load and a branch
// that is not taken. The counts are of the process, not of a database: they decide nothing.
package probe

import "sync/atomic"

// Probe is one place.
type Probe uint8

// The probes, in the order of their names.
const (
	BatchOfSeveral Probe = iota
	ReplayedBatch
	BatchSpansBlocks
	BatchSpansSegments
	BlockCompressed
	BornAndGivenUp
	MetaSettledTwice
	BranchesMerged
	CheckpointFailed
	CleaningDuringCheckpoint
	CommittedAhead
	DeadlistHandedOn
	CollectionCleared
	TreeCleared
	ExtentSlack
	ExtentEmptied
	ExtentRounded
	FailedSyncIsFinal
	FreeHeldBack
	FullDiskBetweenRuns
	FullDiskRefused
	LeaderHandedOn
	LeaderWaited
	LeavesMerged
	LogSegmentRecycled
	LogSegmentRemoved
	LogTailCopied
	MarkWritten
	MetaSettled
	ReplayVacated
	MetaOlder
	OverflowRetired
	OverflowWritten
	PageRefilled
	PinMissed
	RecordsMoved
	LogBatchCut
	NestedRecovery
	LogRoomMade
	SeparatorOverflow
	SplitDepth3
	SplitInRun
	TicketExtended
	TicketScraps
	TicketWaited
	MetaTorn
	RootLowered
	RootRaised
	DataFileUnfinished
	HeadMoved
	TicketShort
)

// table names them, and says when each is hit.
var table = [...]struct{ name, what string }{
	BatchOfSeveral:           {"batch of several writes", "One sync makes several writes durable."},
	ReplayedBatch:            {"batch replayed", "Recovery does the writes of a batch again."},
	BatchSpansBlocks:         {"batch spans blocks", "A batch of the log has more than one block."},
	BatchSpansSegments:       {"batch spans segments", "A batch begins in one segment of the log and ends in another."},
	BlockCompressed:          {"block compressed", "A block of the log is stored compressed."},
	BornAndGivenUp:           {"born and given up in one batch", "A page is made and retired within one batch, and free as soon as that is visible."},
	MetaSettledTwice:         {"both meta pages settled", "Recovery rewrites both, since nothing says that the chosen one is durable."},
	BranchesMerged:           {"branches merged", "Two branch pages become one, with the separator that stood between them."},
	CheckpointFailed:         {"checkpoint failed", "A call of the disk fails while a checkpoint is written, which is final."},
	CleaningDuringCheckpoint: {"cleaning overlapped a checkpoint", "The cleaner moves records between a checkpoint's seal and its end."},
	CommittedAhead:           {"committed ahead", "A batch has grown large, and is made durable before anybody waits for it."},
	DeadlistHandedOn:         {"deadlist handed on", "A snapshot ends, and an older one may still reach a page on its deadlist."},
	CollectionCleared:        {"dropped collection cleared", "The last pages of a dropped collection are given back."},
	TreeCleared:              {"dropped tree cleared", "The last page of a dropped tree is given back."},
	ExtentSlack:              {"extent closed off", "A new extent is opened while the old one has empty pages."},
	ExtentEmptied:            {"extent emptied", "The last live record of an extent goes, and the extent with it."},
	ExtentRounded:            {"extent rounded up", "A checkpoint's seal moves the place where records are appended to the next page."},
	FailedSyncIsFinal:        {"failed sync final", "The log's sync fails: the outcome is unknown, and nothing is written any more."},
	FreeHeldBack:             {"free pages held back", "Pages become free while a checkpoint builds its trees, and wait until it is done."},
	FullDiskBetweenRuns:      {"full disk between two runs of a write", "A write that had to run again, for want of pages in the middle of it, finds the disk full."},
	FullDiskRefused:          {"full disk refused", "A write is told that the disk is full, and nothing has changed."},
	LeaderHandedOn:           {"leader handed on", "A leader leaves and wakes one of those who wait in the next batch."},
	LeaderWaited:             {"leadership waited for", "A checkpoint or a mark waits until no batch is in flight."},
	LeavesMerged:             {"leaves merged", "Two leaves become one."},
	LogSegmentRecycled:       {"log segment recycled", "A segment that nothing needs any more becomes the next one."},
	LogSegmentRemoved:        {"log segment removed", "A segment that nothing needs any more is removed."},
	LogTailCopied:            {"log tail copied", "Recovery copies blocks that were not known to be durable into a new epoch."},
	MarkWritten:              {"mark written", "An empty batch says of the batches before it that they are durable."},
	MetaSettled:              {"meta page settled", "Recovery writes the chosen meta page over one whose place is in doubt."},
	ReplayVacated:            {"number vacated in a replay", "The log gives a collection's number to a new one while the dropped one is still there."},
	MetaOlder:                {"older meta page opened", "The newer meta page is valid, but nothing says that it is durable."},
	OverflowRetired:          {"overflow chain retired", "An entry goes, and the overflow pages that it had."},
	OverflowWritten:          {"overflow chain written", "An entry is too large for a page of its tree."},
	PageRefilled:             {"page refilled", "A page that is nearly empty takes cells from its sibling, for want of room to merge them."},
	PinMissed:                {"pin missed", "A snapshot is replaced between a reader's look at it and its pin."},
	RecordsMoved:             {"records moved", "The cleaner moves a live record out of an extent."},
	LogBatchCut:              {"recovery cut a batch", "Recovery leaves a batch out of which whole blocks have survived."},
	NestedRecovery:           {"recovery of a recovery", "A recovery is interrupted, and another one opens what it has left."},
	LogRoomMade:              {"room in the log made by a writer", "A write does not fit into the segments that are made, drops what it built and makes one."},
	SeparatorOverflow:        {"separator with overflow pages", "A separator's key is too long for its branch."},
	SplitDepth3:              {"split at depth 3", "A branch above other branches is split."},
	SplitInRun:               {"split governed by a run", "Insertions in order decide where a page is cut."},
	TicketExtended:           {"ticket extended", "A ticket gets more pages without waiting for the disk."},
	TicketScraps:             {"ticket from scraps", "The disk is full, and a ticket is filled from anywhere."},
	TicketWaited:             {"ticket waited for another's storage", "Two writes need storage at once, and one waits for what the other allocates."},
	MetaTorn:                 {"torn meta page passed over", "One of the two meta pages is not valid, and the other one is opened."},
	RootLowered:              {"tree became lower", "A root with a single child goes."},
	RootRaised:               {"tree of three levels", "A tree gets a third level, or one more."},
	DataFileUnfinished:       {"unfinished data file removed", "A first open finds what an interrupted one has left, and begins anew."},
	HeadMoved:                {"write rerun on a moved head", "A checkpoint has moved the place of records under a write, which runs again."},
	TicketShort:              {"write rerun on a short ticket", "A write needs more pages than it has reserved, drops what it built and runs again."},
}

var (
	counting atomic.Bool
	hits     [len(table)]atomic.Int64
)

// Count turns the counting on, for the rest of the process.
func Count() { counting.Store(true) }

// Hit says that p's place was reached.
func (p Probe) Hit() {
	if counting.Load() {
		hits[p].Add(1)
	}
}

// HitIf is Hit if the place is the rare one.
func (p Probe) HitIf(rare bool) {
	if rare {
		p.Hit()
	}
}

// Reached is one probe's count.
type Reached struct {
	Name string
	What string // happens where it is
	Hits int64
}

// All gives every probe, in the order of names, with how often it was hit since Count.
func All() []Reached {
	all := make([]Reached, len(table))
	for i, t := range table {
		all[i] = Reached{Name: t.name, What: t.what, Hits: hits[i].Load()}
	}
	return all
}
