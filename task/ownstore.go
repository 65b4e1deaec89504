package task

import (
	"errors"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// openOwn opens the stores that the program keeps itself, and puts them into their specs. After an
// error none is open.
func openOwn(defs []processor.Definition, specs []statestore.Spec, id processor.TaskID, dir string) error {
	for i, d := range defs {
		own, err := d.Open(processor.StorePlace{TaskID: id, Store: d.Name, Dir: dir})
		if err != nil {
			for _, s := range specs[:i] {
				if s.Store != nil {
					err = errors.Join(err, s.Store.Close())
				}
			}
			return err
		}
		if own != nil {
			specs[i].Store, specs[i].ChangelogPartition = own, id.Partition
		}
	}
	return nil
}
