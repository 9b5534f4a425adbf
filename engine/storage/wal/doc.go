// Package wal is the write-ahead log: an endless string of bytes, of which the files wal-<n> in the database's directory
// hold the part that is still needed. It makes batches durable, says after a crash which of them count, and gives them
// back in order. What a batch means is the caller's business; how its records are encoded is in records.go.
//
// # Shape
//
// An LSN is an offset in the endless log. A segment file holds one range of it: a header of 4096 bytes, then the bytes from
// the LSN that the header calls first. A segment's range ends where the next one's begins, so an LSN needs no table: it is
// at offset 4096 + (LSN - first) of the one segment that covers it.
//
//	wal-7                                     wal-8
//	┌────────┬──────────┬─────┬─────────────┐ ┌────────┬─────────┬──────────────────────┐
//	│ header │ block    │ blk │ block       │ │ header │ block   │ zeros, or old blocks │
//	└────────┴──────────┴─────┴─────────────┘ └────────┴─────────┴──────────────────────┘
//	         ^ first                          ^ LSN goes on   ^ end of the log
//
// Blocks begin at multiples of 4096 and are padded to one. A batch is one or more blocks, one after the other, the last of
// them flagged. When a block would not fit into what is left of a segment, less is put into it, so that it does: segments
// are filled to the last byte, LSNs have no gaps, and the next segment's header is known, and durable, long before the
// first block in it (see [Log.Prepare]). A sector that was made durable is never written again while its bytes count.
//
// # The end of the log
//
// No sync separates the blocks of one batch. A crash may keep the third and lose the first, so a bad block does not show
// by itself whether the log ends there. But every block says which LSN was durable when it was written, and every segment
// header does. Let D be the highest LSN that a valid block or header of the newest epoch calls durable, or the LSN of the
// checkpoint that recovery begins at, if that is higher. Then
//
//   - a position below D that has no valid block is damage: recovery refuses, and names file, offset and LSN;
//   - otherwise the log ends before the batch in which the first bad position lies.
//
// To learn D, all segments are read to their ends, at steps of 4096 bytes past whatever is not valid. A mark is an empty
// batch. It is written when the log has been quiet for a while, and on close, so that the last batch is called durable too.
// Until then damage to that very last batch looks like a torn write, and ends the log before it.
//
// # Epochs and cuts
//
// What recovery accepts above D may be in the page cache only, or may be half of what a crash left; and behind the end
// there may be valid blocks of a batch that does not count. So recovery neither goes on in the old segments nor trusts that
// syncing them would help. [Log.Accept] copies the accepted blocks from D on into a new segment, of a new epoch, whose
// header says: this epoch begins at D (the cut), before it lies that epoch, and all below the accepted end is durable. It syncs the
// file, then renames it to its name, then syncs the directory; only then may the caller serve and append.
//
// Of an LSN in two epochs the higher epoch counts, and blocks of an epoch from its cut on do not exist. The epoch is a
// counter with random bits below it, so that two attempts at one recovery never share an epoch, stale blocks of
// a segment used again never pass, and nobody can plant a block inside a document. Cuts never go back: the next recovery's
// D is at least the accepted end that the header states.
//
// # Crashes
//
//   - While a batch is written or synced: any subset of its sectors. It was not acknowledged. If all its blocks are valid it
//     counts, otherwise the log ends before it.
//   - While a segment is made: it is called wal-new until its header is durable, so every wal-<n> has a valid header in every
//     state that a crash can leave, and a bad one is damage. A leftover wal-new is written over.
//   - While a segment is used again: it is renamed to wal-new, and the directory synced, before its header changes.
//   - In Accept before the rename is durable: the next recovery sees the old epochs as they were, since nothing that they need
//     was touched, and decides the same. After: it sees the new epoch, whose header makes the accepted tail part of
//     what may not be missing. A process kill between rename and sync leaves a name that is seen and not durable; so Accept
//     begins with a sync of the directory, before it takes anything away.
//   - In the first Open: nothing, or wal-new, or a complete wal-1.
//   - Between removal of a segment and the next sync of the directory it may come back. It lies below what is retained and is
//     passed over.
//
// # What a caller must never do
//
// Append, Sync and Mark have one caller at a time; Prepare, Release and the readers of numbers may run beside them. Nothing
// is appended before Recover and Accept. After an error that leaves [Log.Err] set nothing is appended any more: what was not
// synced is in doubt until the log is opened again.
package wal
