"""DynamicResources: the plugin that gives pods their devices.

pod_claims           which claims a pod uses, and which events may help it
claim_tracker        claims as the API server will have them once our own writes are there
device_state         devices, classes and taint rules, and which nodes a change concerns
answers              what the plugin asks, and is answered, about claims and nodes
scoring              prioritized alternatives (KEP-4816)
claim_writes         what is written to claims, and what is taken back
binding_conditions   whether devices are ready (KEP-5007); `binding_wait` waits, `binding_gate` holds pods back
extended_resources   extended resources that devices serve (KEP-5004), and the claims made for them
plugin               the extension points
"""
