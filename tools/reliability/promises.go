package main

// Promise is one thing that holds whatever fails.
type Promise struct {
	Row, Text string
	Shown     []Shown
}

// Shown is one test that shows a promise.
type Shown struct {
	Test string
	// Tier is A for make test, B for make test-faults, C for make soak.
	Tier string
	// Demands are what its figures must be, as "lost=0".
	Demands []string
}

func shown(test, tier string, demands ...string) Shown { return Shown{test, tier, demands} }

// Promises are the rows of the table.
var Promises = []Promise{
	{"P1", "an acknowledged turn survives a crash of any process", []Shown{
		shown("TestFaultKills", "B", "kills>=200", "failpoints_unfired=0", "lost=0", "violations=0"),
		shown("TestFaultClusterFleet", "B", "kills>=60", "lost=0", "violations=0"),
		shown("TestSoakKills", "C", "lost=0", "violations=0"),
	}},
	{"P2", "a power loss costs what `--durability` states: nothing under `power`", []Shown{
		shown("TestFaultPower/power", "B", "rounds>=3", "acks>0", "lost=0", "violations=0"),
		shown("TestFaultPower/process", "B", "rounds>=3", "lost>0"),
		shown("TestSoakPower", "C", "acks>0", "lost=0", "violations=0"),
	}},
	{"P3", "each turn is applied once, in order", []Shown{
		shown("TestFaultDuplicates", "B", "duplicates>0", "after_window>0", "reordered>0", "applied_twice=0", "missing=0"),
		shown("TestFaultSimulation", "B", "sessions>0", "duplicates>0", "gaps>0", "violations=0"),
	}},
	{"P4", "every outcome is a function of a prefix of the log and a named config", []Shown{
		shown("TestFaultKills", "B", "outcomes>0", "different=0"),
		shown("TestFaultSimulation", "B", "outcomes>0", "summaries>0", "violations=0"),
	}},
	{"P5", "nothing original is destroyed; of media recorded by their hash, the hash is kept", []Shown{
		shown("TestFaultOriginals", "B", "messages>0", "generations>0", "different=0"),
	}},
	{"P6", "a stale owner changes nothing", []Shown{
		shown("TestFaultFleet", "B", "zombies>=6", "stale=0", "violations=0"),
		shown("TestFaultFleetUnfenced", "B", "zombies>=3", "stale>0"),
		shown("TestFaultFleetCut", "B", "cuts>=4", "stale=0", "violations=0"),
		shown("TestSoakFleetClock", "C", "rounds>=2", "stale=0", "violations=0"),
		shown("TestOneNameOneWorker", "A", "second_refused=1"),
		shown("TestSoakFleet", "C", "zombies>=65", "stale=0", "violations=0"),
	}},
	{"P7", "a poisoned event blocks no other session", []Shown{
		shown("TestPoison", "A", "hostile>=200", "good_changed=0", "content_leaked=0"),
		shown("TestAmplification", "A", "over=0", "omitted>0", "others_omitted=0"),
		shown("TestEditsAreBounded", "A", "refused>0"),
		shown("TestOutcomesNeverFull", "A", "percent<=95", "omitted>0", "others_omitted=0"),
	}},
	{"P8", "a model outage never blocks a session", []Shown{
		shown("TestFaultOutages", "B", "modes>=10", "blocked=0", "over=0"),
		shown("eval", "C", "latency_ratio<=1.2"),
	}},
	{"P9", "an overflow is answered at once", []Shown{
		shown("eval", "C", "p99_ms<=250"),
	}},
	{"P10", "replay gives the same bytes", []Shown{
		shown("TestFaultSimulation", "B", "seeds>=20000", "crashes>0", "violations=0"),
		shown("TestSoakSimulation", "C", "seeds>=250000", "seeds_per_s>=4000", "violations=0"),
		shown("TestFaultKills", "B", "outcomes>0", "different=0"),
		shown("TestFromSnapshotAndFromZero", "A", "rows>0", "different=0"),
		shown("TestFaultSnapshots", "B", "kills>=30", "restored>=20", "lost=0", "twice=0", "missing=0", "parts_left=0"),
		shown("TestFaultMixedVersions", "B", "replaced>=9", "handed_over>=9", "undecided=0", "lost=0", "twice=0", "different=0", "violations=0"),
		shown("TestGolden", "A", "outcomes>0", "different=0"),
	}},
	{"P11", "a damaged ledger file never gives wrong output", []Shown{
		shown("TestDamagedFile/main", "A", "mutations>=900", "undetected=0", "crashed=0"),
		shown("TestDamagedFile/more", "A", "undetected=0", "crashed=0"),
		shown("TestDamagedFile/open", "A", "undetected=0"),
		shown("TestDamagedFile/raw", "A", "undetected>0"),
		shown("TestMutatedSnapshots", "A", "mutations>=16", "not_used>0", "different=0"),
	}},
	{"P12", "a full disk is reported, and nothing acknowledged is lost", []Shown{
		shown("TestFaultDiskFull", "B", "acks>0", "lost=0", "reported_ms<=5000"),
	}},
	{"P13", "a cluster loses a node or a link", []Shown{
		shown("TestFaultClusterFleet", "B", "cuts>=4", "lost=0", "recovery_ms<=12000"),
		shown("TestFaultClusterSnapshots", "B", "snapshots>=6", "stale=0", "different=0"),
		shown("TestFaultClusterLosesLeader", "B", "outcomes>0", "different=0", "recovery_ms<=12000"),
	}},
	{"P14", "memory is bounded", []Shown{
		shown("TestSoakMemory/alone", "C", "turns>=1000000", "sessions>=10000", "lost=0", "rss_mb<=512", "after_percent<=150"),
		shown("TestSoakMemory/embedded", "C", "turns>=1000000", "sessions>=10000", "lost=0", "rss_mb<=768", "after_percent<=150"),
	}},
	{"P15", "bad input never crashes, and never crosses tenants", []Shown{
		shown("scripts/fuzz", "B", "targets>=8", "executions>0", "failed=0"),
	}},
	{"P16", "the tests can fail: planted bugs are caught", []Shown{
		shown("TestSimulationNotices", "A", "planted>=12", "missed=0"),
		shown("TestSyncSimulationNotices", "A", "planted>=6", "missed=0"),
		shown("TestKillNoticesIgnoredMarker", "A", "planted>=1", "missed=0"),
		shown("TestFaultsAreNoticed", "B", "planted>=3", "missed=0"),
		shown("TestFaultFleetUnfenced", "B", "planted>=1", "missed=0"),
	}},
	{"P16b", "a stop ends within its time, and its log states that it is stopping", []Shown{
		shown("TestFaultStop", "B", "late=0", "unlogged=0"),
	}},
	{"P17", "no message keeps a session above its window", []Shown{
		shown("TestNothingPinned", "A", "cases>=9", "over=0"),
		shown("TestFaultNothingPinned", "B", "cases>=372", "over=0"),
	}},
	{"P18", "a fleet starts at once, on an empty server of any size", []Shown{
		shown("TestFaultStartTogether", "B", "starts>=51", "failed=0"),
	}},
	{"P19", "a message id that another tenant has used makes no event vanish", []Shown{
		shown("TestSquattedIDs", "A", "copied>=40", "vanished=0"),
	}},
	{"P20", "no message stops a partition, and no partition the others", []Shown{
		shown("TestControlLookalikes", "A", "planted>=150", "unrejected=0"),
		shown("TestPlantedHeadersLastInPartition", "A", "last_in_partition>=50", "failed_opens=0"),
		shown("TestPartitionFailsAlone", "A", "failed=1", "others_stopped=0", "exits=0"),
		shown("TestFaultPlanted", "B", "planted>=1000", "unrejected=0", "lost=0", "stalls=0", "exits=0", "p99_ratio<=2"),
		shown("TestFaultFuzzedMessages", "B", "messages>=20000", "rejected_twice=0", "stalls=0"),
	}},
	{"P21", "text that is slow to redact stops no other tenant's summaries", []Shown{
		shown("TestSlowTextsStopNoOtherTenant", "A", "hostile_jobs>=5", "slots_taken=2", "others_stopped=0", "unfinished=0"),
	}},
	{"P22", "a synced session has the history of one caller, each message once", []Shown{
		shown("TestSyncSimulation", "A", "syncs>0", "in_sync>0", "compared>0", "violations=0"),
		shown("TestFaultSyncSimulation", "B", "seeds>=20000", "syncs>=20000", "in_sync>0", "interleaved>0", "compared>0", "violations=0"),
	}},
	{"P23", "one tenant does not slow another, and an idle reader of events costs at most 20 KB", []Shown{
		shown("TestFaultNoisyTenant", "B", "attacks>=20", "p99_ratio_percent<=200", "p99_ms<=50", "refused=0", "lost=0", "rss_mb<=700"),
		shown("TestAgentsIdleReaders", "A", "connections>=1000", "sse_kb_per_connection<=20"),
		shown("TestFaultAgentsIdleReaders", "B", "connections>=10000", "sse_kb_per_connection<=20"),
	}},
	{"P24", "the cost of an operation is linear in the messages of its session", []Shown{
		shown("TestLinear", "A", "cases>=500", "worst_cpu<=3.2", "worst_bytes<=3.2"),
		shown("TestFaultLinear", "B", "cases>=3500", "worst_cpu<=3.2", "worst_bytes<=3.2"),
	}},
	{"P25", "only the user speaks for the user: text of others is no rule, and a consent that no user wrote is marked", []Shown{
		shown("TestUserSpeaksAlone", "A", "cases>=1000", "taken_permille<=10", "unmarked_permille<=20", "kept_percent>=97", "marked_percent<=3"),
		shown("TestUserSpeaksAloneHeldOut", "A", "cases>=280", "taken_permille<=10", "unmarked_permille<=20", "kept_percent>=97", "marked_percent<=3"),
	}},
	{"P26", "a log grows while it is used: no turn and no sync is lost or taken twice, and replay gives the same bytes", []Shown{
		shown("TestFaultGrow", "B", "partitions=24", "kills>=2", "acks>0", "syncs>0", "lost=0", "twice=0", "order=0", "different=0", "violations=0"),
		shown("TestFaultSimulation", "B", "seeds>=20000", "growths>0", "children>0", "stale_subjects>0", "erasures>0", "violations=0"),
		shown("TestFaultSyncSimulation", "B", "syncs>=20000", "answered_of_children>0", "wrong_partition>0", "violations=0"),
		shown("TestFaultGrownRefusesOlder", "B", "older=1", "accepted=0"),
	}},
}
