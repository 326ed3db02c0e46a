package config

// standbyTable holds the keys of processes that wait to take over.
func standbyTable() []Property {
	return []Property{
		{
			Name: "standby.session.timeout.ms", Place: InWorker, Group: groupOurs, Type: Millis, Default: "10000", Min: 2000, Max: 1_800_000, Status: Honoured,
			Doc:  "After how much silence of the process that runs a connector another one with the same configuration takes over.",
			Note: "It matters with offset.storage.topic and group.id. The brokers bound it (group.min.session.timeout.ms, group.max.session.timeout.ms).",
		},
	}
}
