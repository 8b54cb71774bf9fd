"""
A run as one portable folder or file that diagnoses the same anywhere, offline.

sealing   what `diagnose` would read of the targets, into a capsule
texts     logs, records and dumps without their secrets
names     what a file is called in it
fetching  the samples a server holds of the run
archive   a folder as one file

It is read by `sources.capsule`, its metrics by `series.columnar`.
"""
