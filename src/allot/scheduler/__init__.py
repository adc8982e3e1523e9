"""The scheduler, laid out as kube-scheduler is.

`assembly` builds a scheduler process; `configuration` reads its file; `core` has the queue, the cycles and the event
handlers; `explain` explains decisions; `plugins` are the plugins, registered in `plugins.registry`; `framework` has the
extension points and the handle; `state` the view of the cluster.
"""
