"""The public API behind `import allot`: clusters as values, allocations, explanations, expressions.

    `manifest_files`   files, directories and patterns → manifests, each with its position
    `loading`          manifests or a running cluster → objects
    `cluster_gates`    the feature gates and rules that apply to them
    `snapshot`         objects → `ClusterSnapshot`
    `arguments`        names and manifests as arguments
    `nodes`            `NodeSnapshot`: a node's devices, and allocation on it
    `allocations`      `Allocation`: the result
    `devices`          `Device`: a device as a value
    `expressions`      `Expression`: a compiled CEL expression
    `explanations`     `Explanation`: the state of a pod or a claim, and the reasons
    `errors`           exceptions

Import the names from `allot`; these modules may move. `docs/python-api.md` documents them.
"""
