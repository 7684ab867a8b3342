package options

import (
	"testing"
	"time"
)

func TestTopicCreate_Faults(t *testing.T) {
	const key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
	for _, c := range []struct {
		options TopicCreate
		want    string
	}{
		{TopicCreate{MessageRetention: 10 * time.Minute}, ""},
		{TopicCreate{MessageRetention: 31 * 24 * time.Hour}, ""},
		{TopicCreate{MessageRetention: 10*time.Minute - 1}, "options.TopicCreate.MessageRetention: 9m59.999999999s: must be 10m0s to 744h0m0s"},
		{TopicCreate{MessageRetention: 31*24*time.Hour + time.Second}, "options.TopicCreate.MessageRetention: 744h0m1s: must be 10m0s to 744h0m0s"},
		{TopicCreate{MessageRetention: Disabled}, "options.TopicCreate.MessageRetention: -1ns: must be 10m0s to 744h0m0s"},
		{TopicCreate{KMSKeyName: key}, ""},
		{TopicCreate{KMSKeyName: "k"}, `options.TopicCreate.KMSKeyName: "k": must be projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>`},
		{TopicCreate{KMSKeyName: key + "/cryptoKeyVersions/1"}, `options.TopicCreate.KMSKeyName: "` + key + `/cryptoKeyVersions/1": must be projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>`},
		{TopicCreate{AllowedPersistenceRegions: []string{"europe-west1", "us-east4"}, EnforceInTransit: true}, ""},
		{TopicCreate{AllowedPersistenceRegions: []string{"europe-west1", "", "Europe"}}, `options.TopicCreate.AllowedPersistenceRegions[1]: "": must be a region, as "europe-west1"
options.TopicCreate.AllowedPersistenceRegions[2]: "Europe": must be a region, as "europe-west1"`},
		{TopicCreate{EnforceInTransit: true}, "options.TopicCreate.EnforceInTransit: true: needs AllowedPersistenceRegions"},
	} {
		if got := faultsOf(c.options.Faults); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.options, got, c.want)
		}
	}
}

func TestTopicCreate_IsSet(t *testing.T) {
	for _, c := range []TopicCreate{{MessageRetention: 1}, {KMSKeyName: "k"}, {AllowedPersistenceRegions: []string{"r"}}, {EnforceInTransit: true}} {
		if !c.IsSet() {
			t.Errorf("%+v is not set", c)
		}
	}
	if (TopicCreate{AllowedPersistenceRegions: []string{}}).IsSet() {
		t.Error("nothing is set")
	}
}
