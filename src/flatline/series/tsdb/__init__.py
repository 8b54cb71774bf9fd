"""
Prometheus's database on disk, read in place: no lock, no server, nothing written.

files     opens without touching access times
xor       many chunks decoded in lockstep
index     a block's index: which series, where their chunks lie
block     a block: its index, its chunks, what was deleted of it
wal       the write-ahead log: pages, records, samples
head      what was not yet in a block: mapped chunks, the log, out-of-order samples
database  all of it as one store

Layouts are those of Prometheus's `tsdb/docs/format`.  What is cut off or does not match its
checksum is left out and counted in a gap; the rest is read.
"""
