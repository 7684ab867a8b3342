package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// flinkOptions are the options of the Flink connector, by the heading of the guide
// under which a row tells what each is here.
var flinkOptions = map[string]string{
	"Sink": `topic destinationResolver serializer createDisposition topicCreateOptions
		publisherOptions failedMessageHandler serviceAccountKeyFile emulatorEndpoint`,
	"Publisher": `batchElementCountThreshold batchRequestByteThreshold batchDelayThreshold
		retryTotalTimeout retryInitialDelay retryDelayMultiplier retryMaxDelay
		retryInitialRpcTimeout retryRpcTimeoutMultiplier retryMaxRpcTimeout retryMaxAttempts
		enableMessageOrdering maxInFlightMessages maxInFlightBytes maxActivePublishers
		destinationIdleTimeout publishProgressTimeout recoveryInitialBackoff
		recoveryMaxBackoff recoveryMaxAttempts maxConsecutiveRejections shutdownTimeout
		perDestinationMetrics`,
	"Topics that the sink creates": `messageRetention kmsKeyName allowedPersistenceRegions
		enforceInTransit`,
	"Source": `subscription subscriptions deserializer orderingMode subscriberOptions
		deserializationFailurePolicy startPosition serviceAccountKeyFile emulatorEndpoint`,
	"Subscriber": `flowControlMaxOutstandingElementCount flowControlMaxOutstandingRequestBytes
		subscriberBufferMaxMessages subscriberBufferMaxBytes pausedSplitBufferMaxMessages
		pausedSplitBufferMaxBytes parallelPullCount maxAckExtensionPeriod
		minDurationPerAckExtension maxDurationPerAckExtension awaitAckConfirmation
		shutdownTimeout maxRecordsPerFetch firstCheckpointTimeout`,
	"Subscriptions that the source creates": `topic ackDeadline enableMessageOrdering
		messageRetention retainAckedMessages expirationTtl neverExpire deadLetterPolicy filter`,
	"Dead letters": `topic serviceAccountKeyFile maxInFlightMessages flushTimeout
		shutdownTimeout emulatorEndpoint`,
}

// javaOptions are those of PubsubIO in Java that a pipeline may have set.
const javaOptions = `readMessages readMessagesWithMessageId readMessagesWithAttributes
	readMessagesWithAttributesAndMessageId readMessagesWithAttributesAndMessageIdAndOrderingKey
	readMessagesWithCoderAndParseFn readStrings readProtos readProtoDynamicMessages readAvros
	readAvroGenericRecords readAvrosWithBeamSchema fromSubscription fromTopic withTimestampAttribute
	withIdAttribute withDeadLetterTopic withErrorHandler withCoderAndParseFn withClientFactory
	withoutValidation withPubsubRootUrl writeMessages writeMessagesDynamic writeStrings
	writeProtos writeAvros to withMaxBatchSize withMaxBatchBytesSize withOrderingKey`

var (
	tableRow = regexp.MustCompile(`(?m)^\| *(.*?) *\| *(.*?) *\|.*$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
	words    = regexp.MustCompile(`\w+`)
	goField  = regexp.MustCompile(`^[A-Z]\w+$`)
)

// section returns what stands under a heading, as far as the next.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := regexpCut(text, regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(heading)+`$`))
	if !found {
		t.Fatalf("the guide has no heading %s", heading)
	}
	body, _, _ := regexpCut(rest, regexp.MustCompile(`(?m)^#+ `))
	return body
}

func regexpCut(s string, at *regexp.Regexp) (before, after string, found bool) {
	loc := at.FindStringIndex(s)
	if loc == nil {
		return s, "", false
	}
	return s[:loc[0]], s[loc[1]:], true
}

// told returns the names in the first cells of the tables of a section, and the fields of
// ours that stand in the second.
func told(body string) (names, fields []string) {
	for _, row := range tableRow.FindAllStringSubmatch(body, -1) {
		for _, m := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			names = append(names, words.FindAllString(m[1], -1)...)
		}
		for _, m := range codeSpan.FindAllStringSubmatch(row[2], -1) {
			if goField.MatchString(m[1]) {
				fields = append(fields, m[1])
			}
		}
	}
	return names, fields
}

// Somebody who comes from elsewhere looks up the options that the old program sets, one
// by one: an option without a row reads as one that is not there.
func TestMigration_EveryOptionHasARow(t *testing.T) {
	guide, err := os.ReadFile("guide/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("options.md")
	if err != nil {
		t.Fatal(err)
	}
	options := map[string]string{"From PubsubIO of Beam's Java SDK": javaOptions}
	for heading, names := range flinkOptions {
		options[heading] = names
	}
	for heading, want := range options {
		names, fields := told(section(t, string(guide), heading))
		for _, name := range strings.Fields(want) {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s has no row", heading, name)
			}
		}
		for _, f := range fields {
			if !strings.Contains(string(reference), "`"+f+"`") {
				t.Errorf("%s: %s is no option of ours", heading, f)
			}
		}
	}
}
