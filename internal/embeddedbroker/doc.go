// Package embeddedbroker gives a program a broker of its own: Kafka's wire protocol
// with groups and transactions (kfake), its log in a folder, in a child process.
//
// The child is the same binary, started again. A kfake that is killed in the middle of
// transactions tears them, so it must not die with the program that is being killed:
// the child sees its standard input end, whatever became of its parent, and closes the
// log cleanly. For the same reason it does not listen to Ctrl-C, which a terminal sends
// to it as well.
//
//	func main() {
//		embeddedbroker.Main() // in the child this never returns
//		b, err := embeddedbroker.Start(ctx, embeddedbroker.Options{Dir: "data/broker"})
//		...
//		defer b.Close()
//		client := connect(b.Addr())
//
// Owns: the folder (lock, the broker's log file, the topics' data), the child process
// and its end.
//
// Never: serves anything but the loopback address; survives a kill -9 of the child
// itself (it says so at the next start: [Broker.Unclean]); is a substitute for Apache
// Kafka in production.
//
// Called by: examples, the command line and whole-system tests. [Start] and the methods
// of [Broker] may be called on any goroutine; one goroutine for each broker waits for
// the child's end and is finished when [Broker.Close] returns.
//
// Invariants:
//
//  1. One child at a time has a folder open. A child that is still closing is waited
//     for; a living one is named in an error.
//  2. The child outlives its parent by the time that closing takes, no longer.
//  3. The state in the lock file says "closed" exactly when everything was written.
//  4. A program that forgot to call Main gets an error, not a chain of children.
package embeddedbroker
