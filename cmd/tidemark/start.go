package main

// startCommands are about what happens when an application starts: legacy files, the scan of
// the state directory, and what is left over in it.
func startCommands() []command {
	return []command{
		{"migrate", "take over the files of Kafka Streams and of Go applications like it", runMigrate},
		{"bench", "measure how fast the task directories of an application are opened", runBench},
		{"clean", "remove the directories of tasks that were not owned here for some time", runClean},
		{"export-checkpoint", "write .checkpoint files from the task stores, for going back", runExport},
	}
}
