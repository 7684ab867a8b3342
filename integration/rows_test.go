package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// rows names a test for each setting of a source, of a sink and of a dead-letter queue: what the setting does,
// beyond that its bad values are refused, which the tests of Validate and Faults say.
var rows = map[string]string{
	"sink.Config.Topic":             "TestWrite_PublishesEveryRecordOnPrism",
	"sink.Config.Resolve":           "TestWrite_ResolvesATopicForEachRecord",
	"sink.Config.CreateDisposition": "TestSink_ATopicDeletedInTheMiddle",
	"sink.Config.TopicCreate":       "TestWrite_CreatesAMissingTopicAsTopicCreateSays",
	"sink.Config.Publisher":         "TestWriteFn_ManyBundlesShareTheCaps",
	"sink.Config.OnFailure":         "TestWrite_EmitFailedGivesTheWholeRecordAtItsTime",
	"sink.Config.OrderBy":           "TestWrite_KeepsTheOrderOfEachKey",
	"sink.Config.SequenceAttribute": "TestWrite_ADroppedMessageLeavesAGapInTheSequence",
	// The encode function is an argument of Write.
	"sink.Config.encode":                "TestNew_WhatARecordDoesNotHaveAddsNothing",
	"sink.Config.TimestampAttribute":    "TestWrite_AddsEventTimeAndID",
	"sink.Config.IDAttribute":           "TestStamp_IDs",
	"sink.Config.ServiceAccountKeyFile": "TestStartBundle_TellsWhatIsWrongWithTheCredentials",
	"sink.Config.EmulatorEndpoint":      "TestWrite_PublishesEveryRecordToTheEmulator",
	"sink.Config.Endpoint":              "TestSink_ARegionalEndpointIsReachedOverTLS",

	"options.Publisher.BatchElementCount":         "TestPool_BatchesByCountAcrossBundles",
	"options.Publisher.BatchBytes":                "TestPool_RequestsStayWithinTheServicesLimits_C28",
	"options.Publisher.BatchDelay":                "TestPool_SendsAfterBatchDelay",
	"options.Publisher.RetryTotalTimeout":         "TestRequest_RetriesEndWithTheLastStatus",
	"options.Publisher.RetryInitialDelay":         "TestRequest_RetriesEndWithTheLastStatus",
	"options.Publisher.RetryDelayMultiplier":      "TestBackoff_GrowsByItsMultiplierUpToItsCap",
	"options.Publisher.RetryMaxDelay":             "TestBackoff_GrowsByItsMultiplierUpToItsCap",
	"options.Publisher.RetryMaxAttempts":          "TestRequest_RetriesEndWithTheLastStatus",
	"options.Publisher.RetryInitialRPCTimeout":    "TestRequest_RetriesEndWithTheLastStatus",
	"options.Publisher.RetryRPCTimeoutMultiplier": "TestRequest_DeadlinesOfAttemptsGrow",
	"options.Publisher.RetryMaxRPCTimeout":        "TestRequest_DeadlinesOfAttemptsGrow",
	"options.Publisher.EnableMessageOrdering":     "TestOrder_BatchesBehindTheRequestOnTheWire",
	"options.Publisher.MaxInFlightMessages":       "TestAdd_AtTheCapSendsWhatIsBatchingThenWaits",
	"options.Publisher.MaxInFlightBytes":          "TestAdd_AMessageAboveTheCapGoesAlone",
	"options.Publisher.MaxActivePublishers":       "TestPlace_ReleasesTheLeastRecentlyUsedCleanOne",
	"options.Publisher.DestinationIdleTimeout":    "TestPlace_IdlePublishersAreReleasedAtASuccessfulEnd",
	"options.Publisher.PublishProgressTimeout":    "TestWait_StallsAfterPublishProgressTimeout",
	"options.Publisher.RecoveryInitialBackoff":    "TestRecover_PausesAreThoseOfTheOptions",
	"options.Publisher.RecoveryMaxBackoff":        "TestRecover_PausesAreThoseOfTheOptions",
	"options.Publisher.RecoveryMaxAttempts":       "TestSink_ATopicThatStaysUnknownFailsTheBundle",
	"options.Publisher.MaxConsecutiveRejections":  "TestSink_C35_TheGuardrailEndsADroppingPolicy",
	"options.Publisher.PerDestinationMetrics":     "TestCounts_ByDestinationOnlyOnRequest",
	"options.Publisher.Compression":               "TestSender_CompressesFromASize_C38",
	"options.Publisher.ShutdownTimeout":           "TestClose_GivesUpAfterShutdownTimeout",

	"options.TopicCreate.MessageRetention":          "TestWrite_CreatesAMissingTopicAsTopicCreateSays",
	"options.TopicCreate.KMSKeyName":                "TestWrite_CreatesAMissingTopicAsTopicCreateSays",
	"options.TopicCreate.AllowedPersistenceRegions": "TestWrite_CreatesAMissingTopicAsTopicCreateSays",
	"options.TopicCreate.EnforceInTransit":          "TestWrite_CreatesAMissingTopicAsTopicCreateSays",

	"source.Config.Subscriptions": "TestPrism_SeveralSubscriptionsOfOneTopic",
	// The decode function is an argument of Read.
	"source.Config.decode":                "TestDecoder_IsFoundByNameAndCalledWithoutReflection",
	"source.Config.Ordering":              "TestPrism_PerKeyKeepsTheOrderThroughFailures",
	"source.Config.Splits":                "TestPrism_SplitsShareASubscription",
	"source.Config.Subscriber":            "TestPrism_C07_ASlowSinkHoldsTheSourceBack",
	"source.Config.OnDecodeFailure":       "TestPolicies_ThePolicyDisposesAndTheRestIsRead",
	"source.Config.NackDelay":             "TestPolicies_C11_PoisonIsPacedAndGoodMessagesAreRead",
	"source.Config.StartPosition":         "TestPrism_C27_StartPositions",
	"source.Config.TimestampAttribute":    "TestPrism_WindowsByTheTimestampAttribute",
	"source.Config.WatermarkLag":          "TestWatermark_C08_DrainedSubscriptionFollowsTheClock",
	"source.Config.WatermarkIdleTimeout":  "TestWatermark_ALullLastsWatermarkIdleTimeout",
	"source.Config.WatermarkHoldLimit":    "TestWatermark_C26_OneHeldMessageHoldsItForAWhileOnly",
	"source.Config.IDAttribute":           "TestIdentities_ACopyIsAcknowledgedWithItsOriginal",
	"source.Config.Limit":                 "TestPrism_StopWhenIdleReadsEverythingFirst",
	"source.Config.ServiceAccountKeyFile": "TestStartupFn_CredentialsThatCannotBeRead",
	"source.Config.EmulatorEndpoint":      "TestPrism_RelaysTwentyThousandOnTheEmulator",
	"source.Config.Endpoint":              "TestPrism_ASourceReachesARegionalEndpointOverTLS",

	"options.Subscriber.MaxOutstandingMessages":  "TestReader_HoldsItsStreamBackWhereTheServerDoesNot",
	"options.Subscriber.MaxOutstandingBytes":     "TestReader_OutstandingBytesHoldTheStreamBack",
	"options.Subscriber.BufferMaxMessages":       "TestReader_C07_FullBufferHoldsTheStreamBack",
	"options.Subscriber.BufferMaxBytes":          "TestReader_C07_BufferedBytesHoldTheStreamBack",
	"options.Subscriber.PausedBufferMaxMessages": "TestPark_APausedSplitReturnsItsBuffer",
	"options.Subscriber.PausedBufferMaxBytes":    "TestPark_BytesCountToo",
	"options.Subscriber.Streams":                 "TestPrism_StreamsShareASplit",
	"options.Subscriber.MaxExtension":            "TestReader_C04_LapsedMessagesAreDroppedAndTakenAgain",
	"options.Subscriber.MinExtensionPeriod":      "TestLeases_PeriodsStayWithinTheirBounds",
	"options.Subscriber.MaxExtensionPeriod":      "TestLeases_PeriodsStayWithinTheirBounds",
	"options.Subscriber.AwaitAckConfirmation":    "TestReader_AcknowledgementIsConfirmedInTimeOrTheNextBundleFails",
	"options.Subscriber.MaxRecordsPerBundle":     "TestReadFn_C22_DrainSettlesAndEnds",
	"options.Subscriber.MaxBundleBytes":          "TestBudget_IsSharedAmongReadersThatHaveMessages",
	"options.Subscriber.BundleFillDelay":         "TestVisit_WaitsABitForMore",
	"options.Subscriber.MaxBundleDuration":       "TestVisit_TakesNothingAfterMaxBundleDuration",
	"options.Subscriber.FirstCommitTimeout":      "TestReader_FirstCommitTimeoutSaysThatTheRunnerDoesNotFinalize",
	"options.Subscriber.ShutdownTimeout":         "TestReader_C15_CloseThatOverrunsIsCounted",

	"dlq.Config.Topic":                 "TestWriter_FlushReturnsOnceAllIsStored",
	"dlq.Config.MaxInFlightMessages":   "TestWriter_WriteThroughStoresEachLetterBeforeOfferReturns",
	"dlq.Config.FlushTimeout":          "TestWriter_OneDeadlineForAllThatIsInFlight",
	"dlq.Config.ShutdownTimeout":       "TestConfig_ThePoolFollowsTheOptions",
	"dlq.Config.ServiceAccountKeyFile": "TestConfig_OpenTellsWhatIsWrongWithTheCredentials",
	"dlq.Config.EmulatorEndpoint":      "TestDeadLetters_OfASink",
	"dlq.Config.Endpoint":              "TestDeadLetters_ARegionalEndpointIsReachedOverTLS",

	"options.Limit.MaxMessages":                        "TestGroup_LimitIsCountedTogetherWhereOneProcessRunsAll",
	"options.Limit.MaxDuration":                        "TestPrism_MaxDurationEndsABusyRead",
	"options.Limit.StopWhenIdle":                       "TestPrism_StopWhenIdleReadsEverythingFirst",
	"options.DeadLetterPolicy.Topic":                   "TestStartup_CreatesWithEverySetting",
	"options.DeadLetterPolicy.MaxDeliveryAttempts":     "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.Topic":                 "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.AckDeadline":           "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.EnableMessageOrdering": "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.MessageRetention":      "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.RetainAckedMessages":   "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.ExpirationTTL":         "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.NeverExpire":           "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.DeadLetterPolicy":      "TestStartup_CreatesWithEverySetting",
	"options.SubscriptionCreate.Filter":                "TestStartup_CreatesWithEverySetting",
}

// A setting without a test of what it does was there, and did nothing.
func TestRows_EverySettingHasATest(t *testing.T) {
	fields := map[string]bool{"sink.Config.encode": true, "source.Config.decode": true}
	for _, v := range []any{
		sink.Config{}, options.Publisher{}, options.TopicCreate{},
		source.Config{}, options.Subscriber{}, options.SubscriptionCreate{}, options.DeadLetterPolicy{}, options.Limit{},
		dlq.Config{},
	} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			if !typ.Field(i).IsExported() {
				continue
			}
			name := typ.String() + "." + typ.Field(i).Name
			fields[name] = true
			if rows[name] == "" {
				t.Errorf("%s has no test in rows", name)
			}
		}
	}
	written := testsOf(t, "..")
	for field, test := range rows {
		if !fields[field] {
			t.Errorf("%s, in rows, is no field", field)
		}
		if !written[test] {
			t.Errorf("%s, the test of %s, does not exist", test, field)
		}
	}
}

// testsOf returns the names of all tests under root.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
