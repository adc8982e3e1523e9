"""Messages of policy.v1; written by scripts/protobuf_tables.py."""

TABLE = """
Eviction kind
  1 metadata meta.v1.ObjectMeta
  2 deleteOptions *meta.v1.DeleteOptions?

PodDisruptionBudget kind
  1 metadata meta.v1.ObjectMeta
  2 spec PodDisruptionBudgetSpec
  3 status PodDisruptionBudgetStatus

PodDisruptionBudgetList kind
  1 metadata meta.v1.ListMeta
  2 items []PodDisruptionBudget

PodDisruptionBudgetSpec
  1 minAvailable *intstr?
  2 selector *meta.v1.LabelSelector?
  3 maxUnavailable *intstr?
  4 unhealthyPodEvictionPolicy *string?

PodDisruptionBudgetStatus
  1 observedGeneration int64?
  2 disruptedPods {}time?
  3 disruptionsAllowed int32
  4 currentHealthy int32
  5 desiredHealthy int32
  6 expectedPods int32
  7 conditions []meta.v1.Condition?
"""
