"""DynamicResources: the plugin that allocates devices to pods.

factory              makes the plugin of a profile
plugin               reserve, pre_bind, post_filter; the filter and score are in `claim_filter`
filter_results       values of the filter; `allocation_cache` keeps them by node
pod_claims           the claims of a pod, and queueing hints (`claim_queueing`)
claim_writes         writes `status.allocation` and `status.reservedFor`, through `claim_write_queue`
scores               prioritized alternatives (KEP-4816); `skipped_alternatives` warns about skipped ones
binding_conditions   whether devices are ready (KEP-5007); `binding_wait` waits, `binding_gate` releases, `binding_reports` reports
extended_resources   extended resources that devices serve (KEP-5004), and their claims (`pod_extension`, `extended_claims`)
failed_devices       devices that a pod avoids

Claims and devices of the cluster are in `scheduler.state`: `claim_tracker` and `device_state`.
"""
