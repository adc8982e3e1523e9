"""Dynamic admission: policies and webhooks that users register with admissionregistration.k8s.io.

    write ──► `admission.py` ──► `configuration.py`: which policies and webhooks may be about it
                             ├─► `validating_policies.py`, `mutating_policies.py` ──► `expressions.py` (CEL)
                             └─► `webhooks.py` ──► `webhook_client.py` (HTTPS)

`matching.py` decides whether one of them matches a request, `review_request.py` is the request as they see it.
Without any policy or webhook a write pays for one comparison.
"""
