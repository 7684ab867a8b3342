// Package filter is the language in which Pub/Sub filters messages by their attributes
// (https://cloud.google.com/pubsub/docs/subscription-message-filter), for a server that
// filters as the service does, and for programs that filter what they have read:
//
//	attributes:key                          the message has that attribute
//	attributes.key = "value"                and it has that value
//	attributes.key != "value"               it has another value, or no such attribute
//	hasPrefix(attributes.key, "prefix")     its value begins so
//	NOT x, -x, x AND y, x OR y, (x)         NOT binds the closest; AND beside OR needs parentheses
//
// A key of other characters than letters, digits, _ and - is a string, as a value is:
// attributes."iana.org/lang" = "en". Strings have the escapes of Go.
package filter
