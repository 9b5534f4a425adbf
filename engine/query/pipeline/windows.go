package pipeline

type windowRow struct{ name string }

var windows []windowRow
