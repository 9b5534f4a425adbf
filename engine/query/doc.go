// Package query plans queries and runs them. It knows documents, and of storage only what Source says: records in the order of
// their ids, and indexes as ordered keys.
//
// # From a filter to a scan
//
// A filter is a tree of tests (package match). For each path that an index has, limits.go asks the tree what it says of the
// index's entries: a set of values, as disjoint intervals, of which every document that passes has at least one in the index. Sets err on
// the side of too much, and what of the filter they do not settle is applied again to every document that a scan finds; so an index can
// only make a query faster, never different. That is what TestPlansAgree of package engine holds.
//
//	{a: {$in: [1, 3]}, b: {$gte: 2, $lt: 9}}    on {a: 1, b: -1}:    a: [1, 1] [3, 3]    b: [2, 9)
//
// Arrays make it subtle. A document with a: [0, 10] passes {a: {$gt: 5, $lt: 6}}, though neither entry is in (5, 6). So on a
// path where an array was ever met (Index.Multikey) one test alone bounds the scan; and on two paths that share an array, only tests that
// are known to speak of the same element, since they stand under one $elemMatch. A document may then have several entries inside the
// bounds, and a run remembers the ids that it has given.
//
// A hashed field is bounded only by single values, by their hashes. A wildcard index stands for as many indexes as paths are tested, each sparse
// and of two fields, the path and the value (wildcard.go).
//
// # Choosing
//
// Each index that can bound a scan, or gives the order asked for, is a candidate, and so is an $or whose branches all have one. What a scan will visit is
// estimated by the tree; a scan in the wrong order pays for the sort, one in the right order stops at the limit. Where estimates tie a short trial
// decides, which is remembered (trial.go). A sort behind an $in, or over an $or, merges scans (merge.go).
//
// # Without documents
//
// An entry and its trailer give back the values that the key was made of. A query that needs no others is covered: documents are made of entries
// (cover.go). Of any other, the part of the filter that an entry tells enough for is tested before the document is fetched. Neither is
// done where there are arrays, of which an entry holds one element.
//
// # Running
//
// An access walks records or entries, a Run fetches, filters, sorts, skips, limits and projects. Bounds let a scan jump: when
// a field of a key is outside its spans, the scan seeks to the next key that can be inside. A sort that no index gives is done by package
// sortkey, in bounded memory.
//
// A Run reads from a Source only between Attach and Detach. In between it is a position: the key of the last entry or the id
// of the last record. It goes on behind that place in whatever the collection has become: every document that was there all the time is given
// exactly once; what was changed meanwhile may be seen as it was, as it became, or not at all.
package query
