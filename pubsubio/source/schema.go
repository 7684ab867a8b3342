package source

// schemaEncoding is the attribute by which the service tells how a message of a topic
// with a schema is encoded, from "Parse messages from a topic with a schema" in the
// Pub/Sub documentation
// (https://cloud.google.com/pubsub/docs/schemas-valid). The schema's revision
// may be an Avro or a protocol buffer one.
const schemaEncoding = "googclient_schemaencoding"

// Its values. Any other is left to the decoder.
const (
	binaryEncoding = "BINARY"
	jsonEncoding   = "JSON"
)
