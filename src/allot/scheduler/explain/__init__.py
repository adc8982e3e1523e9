"""Why pods are pending: detailed explanations on request, and short reasons for conditions and events.

    `explainer`         what the scheduler would decide about a pod now: node by node, and what would help
    `object_explainer`  the state of a pod or a claim, from the objects of the API and from `explainer`
    `failure_reasons`   the short form for conditions and events, computed while no pod waits
    `explanations`      explanations as values, which are also the JSON output

Explanations of devices come from `allot.allocation.explain`.
"""
