package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/task"
)

// result is a word and how often it was found.
type result struct {
	word  string
	count int64
}

// readResults reads the counts from the changelog of their store.
//
// The output topic holds them too, but is exact only under exactly-once. Under at-least-once
// a killed run's last outputs, sent and not answered, may in theory be written behind those
// of the run that took over. The changelog is written by transactions in both guarantees: a
// dead run's is aborted by the one that takes over, so that the last value of each word is
// what its task has committed. (A program of one process could ask its stores, but here
// another process may run the tasks.)
func readResults(ctx context.Context, o options, p *place) ([]result, error) {
	counts := map[string]int64{}
	err := p.readTopic(ctx, task.ChangelogTopic(o.app, storeName), func(r *kafka.Record) error {
		if r.Value == nil {
			delete(counts, string(r.Key))
			return nil
		}
		n, err := serde.Int64.Decode(r.Value)
		counts[string(r.Key)] = n
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]result, 0, len(counts))
	for word, n := range counts {
		all = append(all, result{word, n})
	}
	slices.SortFunc(all, func(a, b result) int {
		return cmp.Or(-cmp.Compare(a.count, b.count), cmp.Compare(a.word, b.word))
	})
	return all, nil
}

// printResults prints the words, the most frequent first.
func printResults(ctx context.Context, o options, p *place) error {
	// After --follow the signal that ended it has ended ctx too.
	all, err := readResults(context.WithoutCancel(ctx), o, p)
	if err != nil {
		return err
	}
	var total int64
	for _, r := range all {
		total += r.count
	}
	p.show.printf("counted: %s words, %s different", grouped(total), grouped(int64(len(all))))
	out := bufio.NewWriter(os.Stdout)
	format := "%d\t%s\n"
	if !o.all {
		format = "%10d  %s\n"
		all = all[:min(len(all), o.top)]
	}
	for _, r := range all {
		fmt.Fprintf(out, format, r.count, r.word) // Flush gives the error
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
