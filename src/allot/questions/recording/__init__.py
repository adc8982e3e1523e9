"""Recordings: what happened in a cluster, as far as scheduling reads it.

lines      the format: a header, a snapshot, and changes with their times, one JSON value a line
reader     a recording to look at: its times, the cluster at a time, changes between two times
writer     appends changes, and folds old ones into the snapshot
aliases    other names for anonymized recordings, kept beside them
recorder   follows a cluster, and writes what changes
moments    times as people write them
"""
