"""Workloads: kinds that run pods from a template, each with its own controller.

accessors, names, conditions,
int_or_percent                          values: fields, generated names, conditions, percentages
pod_states, pod_ranking, pod_templates  pods: readiness, deletion order, creation from a template
ownership, dependents, expectations     controller references, adoption, pending writes
pod_control, status_writes, revisions   writes
replica_set, replication_controller,
deployment, stateful_set, daemon_set,
job                                     the kinds
"""
