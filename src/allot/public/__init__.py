"""What `import allot` offers: clusters as values, allocations, explanations, expressions.

    `manifest_files`   files, directories and patterns → manifests, each with its place
    `loading`          manifests or a running cluster → objects
    `cluster_gates`    which feature gates and rules hold for them
    `snapshot`         objects → `ClusterSnapshot`, which answers questions
    `arguments`        names and manifests that callers pass
    `nodes`            `NodeSnapshot`: a node's devices, and what claims get there
    `allocations`      `Allocation`: the answer
    `devices`          `Device`: a device as a value
    `expressions`      `Expression`: a compiled CEL expression
    `explanations`     `Explanation`: what a pod or a claim is doing, and why
    `errors`           what goes wrong

Import the names from `allot`; these modules may move. `docs/python-api.md` documents them.
"""
