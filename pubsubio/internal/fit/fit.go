// Package fit is the rules by which a subscription can be read and a topic can take
// dead letters, where the service says what they are. A read, a dead-letter queue and
// package check have them from here. It makes no call.
package fit

import "strings"

// A Fault is what keeps a resource from being used as it is to be, and what mends it.
type Fault struct {
	// Text is the end of a sentence that begins with the resource's name.
	Text string
	// Remedy says what to do about it.
	Remedy string
	// Commands do it, where commands can, one after the other.
	Commands []string
}

func (f Fault) String() string {
	if f.Remedy == "" {
		return f.Text
	}
	return f.Text + "; " + f.Remedy
}

// Texts are faults as texts.
func Texts(faults []Fault) []string {
	var texts []string
	for _, f := range faults {
		texts = append(texts, f.String())
	}
	return texts
}

// DeletedTopic is what a subscription names as its topic once that is deleted.
const DeletedTopic = "_deleted-topic_"

// beside returns a name for a resource that is to be made beside another.
func beside(name, suffix string) string {
	const longest = 255 // bytes of an id
	at := strings.LastIndexByte(name, '/') + 1
	id := name[at:]
	return name[:at] + id[:min(len(id), longest-len(suffix))] + suffix
}
