// Package topics makes the topics of the examples, and a broker where there is none, and reads back what they wrote.
//
// Owns: nothing beyond a call, which makes its own clients and closes them; but for the folder and the broker of Place, whose end it gives.
//
// Never: shows how to use Tidemark. What a program would do itself stands in the examples.
//
// Called by: the examples, from their main goroutine.
//
// Invariants:
//
//   - X1: Read ends at the ends that the topics have when it begins. No pause is taken for an end, so that a slow
//     machine sees what a fast one does.
package topics
