"""Object in, field errors out: the rules of the resource.k8s.io API.

Kubernetes has two families of rules, hand-written and declared on the types, with slightly different
texts. Where both would answer, the declared rule does; an error remembers which it was, because
declared rules speak of the fields of the request's version and hand-written ones of v1.
"""
