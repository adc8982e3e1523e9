"""Why pods are pending, for those who ask and for conditions and events.

    `explainer`         what the scheduler would decide about a pod now: node by node, and what would help
    `object_explainer`  what a pod or a claim is doing, from what the API says and from `explainer`
    `failure_reasons`   the part that conditions and events have room for, found while no pod waits
    `explanations`      all of that as values, written as JSON as they are

What is said about devices is found and worded by `allot.allocation.explain`.
"""
