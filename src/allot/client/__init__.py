"""A Kubernetes API server as a Python object: one interface, over HTTP or in this process.

    resources      what there is: PODS, RESOURCE_CLAIMS, ... each with its `codec`
    client         get, list, create, update, patch, delete, watch; repeats what may be repeated
    transport      how requests travel: `in_process` (an ASGI application) or `http` (with `kubeconfig`)
    informer       a copy of a resource that follows the server, with indexes and handlers
    work_queue     keys to reconcile, each once at a time, later after failures
    leader_election, events   a Lease that one of several holds; what users are told

Objects of resource.k8s.io are hub structs, all others views of raw JSON that keep every field. Objects
are shared by everybody who reads them: a change is a copy.
"""
