"""The watch cache: every stored object in memory, decoded on demand, with the recent changes that watches read.

caches           one cache per resource
cache            a resource's objects and its window of recent changes
window           how many changes, and how many bytes of them, are kept
stored_objects   an object at one revision
representations  the memory budget of decoded objects and encoded bodies
codecs           between stored or sent JSON and objects
"""
