// Package commands is the simulator's program over the command layer: clients ask a whole engine, in process, and package model
// says what each may answer and what a power cut may leave.
//
// # What a run does
//
// One to eight clients work in a world of package sim, on a few databases and collections. What each does is drawn beforehand (draw.go): inserts
// of one document and of hundreds, updates, upserts, deletes, findAndModify, searches by several plans, counts, cursors that are left open; indexes
// and collections come and go, and are renamed; documents expire; the clock jumps; operations are interrupted. Some documents are
// everybody's and hot, some claim a value of a unique index, the others are a client's own.
//
// # How it is judged
//
// Every operation and every reply goes to a [model.History], which knows all the orders that explain them. A reply that none explains ends the
// run. At a power cut the history says what may be left; the image is opened, checked by the engine itself (pages, trees, documents
// against index entries), and read by every plan there is: all give one set, and that is one of those. Then it lives on for 20 operations, a
// checkpoint and a further cut.
//
// # Across configurations
//
// [Compare] gives one client's operations to engines of many sizes, on simulated files and on real ones: every reply and what is left at the end are
// the same.
package commands
