// Package match holds filters: {a: {$gt: 5}, "b.c": null}. Parse reads one into a tree once, Match evaluates the tree on any number of
// documents, each in its raw bytes: what the filter does not name is stepped over, nothing is decoded, and nothing is allocated.
//
// tree.go is the tree, which the planner reads as well; the meaning of paths is written there. operators.go is the table of
// operators; each has a file op_<name>.go with its parser and its test of a value. eval.go walks paths, scan.go steps over
// elements. A regular expression is translated (translate.go) for the linear library where that means the same, else for the
// backtracking one. schema*.go is JSON schema.
//
// # What always holds
//
// A filter is bounded before it is built: 16 MiB and 180 levels as a document, 100 levels as a filter, regular expressions of 32 764
// bytes and of a bounded weight in sum. A path visits no place of a document twice for the same rest, so a match takes at
// most about the size of the document times that of the filter; a backtracking regular expression is stopped after a second a value.
//
// Documents come validated (value.Validate); on others the answer means nothing, but nothing panics.
package match
