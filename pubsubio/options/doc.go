// Package options holds the settings that the source and the sink share: plain
// structs that travel to the workers as JSON.
//
// The zero value of every field means its default. Where zero or "no bound"
// is wanted instead, [Disabled] or [Unbounded] says so. Each struct's
// WithDefaults fills in what is unset, and its Faults lists every broken rule
// at once, each naming the field, the value and the rule; nothing is clamped.
package options
