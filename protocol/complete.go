package protocol

// Kinds of values that can be completed.
const (
	CompleteHandle     = "handle"
	CompleteCity       = "city"
	CompleteCategory   = "category"
	CompleteTag        = "tag"
	CompleteCapability = "capability"
)

// MaxCompleted is how many values one answer holds (MCP 2026-07-28, "Completion").
const MaxCompleted = 100

// A Completion asks for the values in use that begin with something.
type Completion struct {
	Of     string `json:"of" enum:"handle,city,category,tag,capability" doc:"handle: of this node's listed profiles. The others: of its listed profiles and shops."`
	Prefix string `json:"prefix,omitempty" maxLength:"80" doc:"In any case. Left out: any."`
}

// Completed are values, the most frequent first; handles in order.
type Completed struct {
	Values []string `json:"values" maxItems:"100"`
	Total  int      `json:"total" minimum:"0" doc:"How many there are; of handles one more than are given at most."`
}

// CompleteValue has no door of its own: the MCP doors call it.
var CompleteValue = declare[Completion, Completed](Operation{
	Name: "complete_value", Title: "Complete a value",
	Summary:     "Values in use that begin with some letters: handles, cities, categories, tags, capabilities.",
	Description: "All but handles are counted every few minutes.",
	ReadOnly:    true,
	Example:     Completion{Of: CompleteCity, Prefix: "Ben"},
})
