"""What tables are made of. The table of a kind is in its module in `allot.apiserver.kinds`.

column     columns, rows, tables
ages       times as `kubectl get` shows them
words      parts of objects as cells
pods, volumes    cells of pods, and those that volumes and volume claims share
"""
