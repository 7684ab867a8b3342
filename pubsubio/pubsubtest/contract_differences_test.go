package pubsubtest_test

// differences says, by case and server, what a server does instead of what the
// contract says. The emulator is 0.8.20, pstest that of pubsub/v2 v2.9.0.
var differences = map[string]map[target]string{
	"flow control by messages holds":    {theEmulator: "has none: it sends up to 100 messages in each of response after response"},
	"flow control by bytes holds":       {theEmulator: "has none"},
	"a pull of nothing is refused":      {pstestServer: "returns nothing, after a while"},
	"ack ids that are none are refused": {pstestServer: "ignores them"},
	"an extension beyond 600 s is refused": {
		theEmulator:  "extends",
		pstestServer: "extends",
	},
	"an acknowledgement over 512 KiB is refused": {
		theEmulator:  "acknowledges",
		pstestServer: "acknowledges",
	},
	"a stream's deadline of 9 s is refused":                {pstestServer: "opens the stream"},
	"a stream names its subscription once":                 {pstestServer: "ignores what later requests name"},
	"a stream's pings are answered":                        {theEmulator: "answers none, as before 0.8.32"},
	"names against the rules are refused":                  {pstestServer: "accepts any name"},
	"publishing to no topic's name is an invalid argument": {pstestServer: "answers NOT_FOUND, or publishes"},
	"a topic is updated as its mask says":                  {theEmulator: "knows only the schema settings"},
	"a subscription's defaults": {
		theEmulator:  "tells neither expiration policy nor state",
		pstestServer: "tells no expiration policy",
	},
	"an update of the filter is refused":  {pstestServer: "changes the filter"},
	"an update without a mask is refused": {pstestServer: "changes nothing"},
	"a deadline of 9 s is refused": {
		theEmulator:  "accepts it",
		pstestServer: "accepts it",
	},
	"a detached subscription says so": {
		theEmulator:  "has no such method",
		pstestServer: "detaches, and does not tell",
	},
	"a detached subscription refuses pulls": {
		theEmulator:  "has no such method",
		pstestServer: "returns nothing",
	},
	"a push subscription refuses pulls": {
		theEmulator:  "lets a pull wait, and refuses a stream",
		pstestServer: "lets both wait",
	},
	"9.9 MB of data are published":     {pstestServer: "takes no request over 4 MiB"},
	"no message is refused":            {pstestServer: "publishes nothing"},
	"an empty message is refused":      {pstestServer: "publishes"},
	"an ordering key alone is refused": {pstestServer: "publishes"},
	"1,001 messages are refused":       {pstestServer: "publishes"},
	"10 MB of data are refused": {
		theEmulator:  "publishes",
		pstestServer: "takes no request over 4 MiB: RESOURCE_EXHAUSTED",
	},
	"101 attributes are refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"an empty key is refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"a key of 257 bytes is refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"a value of 1,025 bytes is refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"a key that begins with goog is refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"a key that begins with GOOG is refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"an ordering key of 1,025 bytes is refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"two ordering keys in a request are refused": {
		theEmulator:  "publishes",
		pstestServer: "publishes",
	},
	"messages of a key come in their order": {pstestServer: "delivers one message of a key at a time, the next when it is acknowledged"},
	"a returned message brings all later ones of its key": {
		theEmulator:  "brings it, and those before it, when the leases end",
		pstestServer: "delivers one message of a key at a time",
	},
	"also those that were acknowledged": {
		theEmulator:  "brings it when the leases end",
		pstestServer: "delivers one message of a key at a time",
	},
	"a key stays with its stream": {
		theEmulator:  byChance + "has no flow control, so that one stream may get all",
		pstestServer: byChance + "has no flow control, so that one stream may get all",
	},
	"a message is forwarded after its deliveries": {pstestServer: "adds no attributes"},
	"4 delivery attempts are refused": {
		theEmulator:  "answers OUT_OF_RANGE",
		pstestServer: "accepts them",
	},
	"seek to the future with message ordering": {theEmulator: "answers UNIMPLEMENTED"},
	"seek back brings what is retained":        {pstestServer: crashes + ": the messages that it brings back are nil"},
	"seek to no snapshot is not found":         {pstestServer: "answers UNIMPLEMENTED"},
	"filter by key":                            {theEmulator: "delivers every message"},
	"filter by no key":                         {theEmulator: "delivers every message"},
	"filter by minus key":                      {theEmulator: "delivers every message"},
	"filter by value":                          {theEmulator: "delivers every message"},
	"filter by other value":                    {theEmulator: "delivers every message"},
	"filter by prefix":                         {theEmulator: "delivers every message"},
	"filter by quoted key":                     {theEmulator: "delivers every message"},
	"filter with AND":                          {theEmulator: "delivers every message"},
	"filter with OR":                           {theEmulator: "delivers every message"},
	"filter with parentheses":                  {theEmulator: "delivers every message"},
	"filters that are none are refused": {
		theEmulator:  "accepts any text",
		pstestServer: "accepts some",
	},
}
