package metrics

import (
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

var (
	openStores = gauge("task_stores", "Databases of tasks that are open.")

	cacheBudget    = gauge("cache_budget_bytes", "What the caches of the task stores may take together.")
	cacheBytes     = gauge("cache_bytes", "What the entries of the caches take; writes that are not in the database yet are among them.")
	cacheHeld      = gauge("cache_held_bytes", "The memory that the caches have for their entries.")
	cacheUnapplied = gauge("cache_unapplied_bytes", "Writes that are not in the database yet, as of the last seal or apply of each task.")
	cacheHits      = counter("cache_hits_total", "Reads that needed no look into the database.")
	cacheMisses    = counter("cache_misses_total", "Reads that did.")
	cacheEvictions = counter("cache_evictions_total", "Entries given up for room.")

	blockBytes  = gauge("block_cache_bytes", "What the cache of database blocks holds.")
	blockHits   = counter("block_cache_hits_total", "Blocks found in the cache of database blocks.")
	blockMisses = counter("block_cache_misses_total", "Blocks that had to be read.")
	memTables   = gauge("memtable_bytes", "About what the memtables of the databases hold.")

	abandonedDatabases = counter("abandoned_databases_total", "Databases of this process that failed and could not be closed.")
	abandonedClients   = counter("abandoned_clients_total", "Parts of Kafka clients of this process that did not end and were left behind.")
)

func (c collection) stores(s statestore.ResourceStats) {
	c.count(openStores, int64(s.TaskStores))
	c.count(cacheBudget, s.Cache.BudgetBytes)
	c.count(cacheBytes, s.Cache.Bytes)
	c.count(cacheHeld, s.Cache.HeldBytes)
	c.count(cacheUnapplied, s.Cache.UnappliedBytes)
	c.count(cacheHits, s.Cache.Hits)
	c.count(cacheMisses, s.Cache.Misses)
	c.count(cacheEvictions, s.Cache.Evictions)
	c.count(blockBytes, s.BlockCacheBytes)
	c.count(blockHits, s.BlockCacheHits)
	c.count(blockMisses, s.BlockCacheMisses)
	c.count(memTables, s.MemTableBytes)
}

// abandoned are the process's, whatever becomes of the application.
func (c collection) abandoned() {
	c.count(abandonedDatabases, statestore.Abandoned())
	c.count(abandonedClients, kafka.Abandoned())
}
