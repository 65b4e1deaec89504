package main

// storeCommands look into task stores.
func storeCommands() []command {
	return []command{
		{"inspect", "what is in a state directory: tasks, stores, offsets, sizes, problems", runInspect},
		{"verify", "read every block and every row of every task store", runVerify},
		{"dump", "print the entries of one store", runDump},
		{"snapshot", "copy task stores, also those of a running application", runSnapshot},
	}
}
