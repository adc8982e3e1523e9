"""Messages of autoscaling.v1; written by scripts/protobuf_tables.py."""

TABLE = """
ContainerResourceMetricSource
  1 name string
  2 targetAverageUtilization *int32?
  3 targetAverageValue *quantity?
  5 container string

ContainerResourceMetricStatus
  1 name string
  2 currentAverageUtilization *int32?
  3 currentAverageValue quantity
  4 container string

CrossVersionObjectReference
  1 kind string
  2 name string
  3 apiVersion string?

ExternalMetricSource
  1 metricName string
  2 metricSelector *meta.v1.LabelSelector?
  3 targetValue *quantity?
  4 targetAverageValue *quantity?

ExternalMetricStatus
  1 metricName string
  2 metricSelector *meta.v1.LabelSelector?
  3 currentValue quantity
  4 currentAverageValue *quantity?

HorizontalPodAutoscaler kind
  1 metadata meta.v1.ObjectMeta
  2 spec HorizontalPodAutoscalerSpec
  3 status HorizontalPodAutoscalerStatus

HorizontalPodAutoscalerCondition
  1 type string
  2 status string
  3 lastTransitionTime time
  4 reason string?
  5 message string?
  6 observedGeneration *int64?

HorizontalPodAutoscalerList kind
  1 metadata meta.v1.ListMeta
  2 items []HorizontalPodAutoscaler

HorizontalPodAutoscalerSpec
  1 scaleTargetRef CrossVersionObjectReference
  2 minReplicas *int32?
  3 maxReplicas int32
  4 targetCPUUtilizationPercentage *int32?

HorizontalPodAutoscalerStatus
  1 observedGeneration *int64?
  2 lastScaleTime *time?
  3 currentReplicas int32
  4 desiredReplicas int32
  5 currentCPUUtilizationPercentage *int32?

MetricSpec
  1 type string
  2 object *ObjectMetricSource?
  3 pods *PodsMetricSource?
  4 resource *ResourceMetricSource?
  5 external *ExternalMetricSource?
  7 containerResource *ContainerResourceMetricSource?

MetricStatus
  1 type string
  2 object *ObjectMetricStatus?
  3 pods *PodsMetricStatus?
  4 resource *ResourceMetricStatus?
  5 external *ExternalMetricStatus?
  7 containerResource *ContainerResourceMetricStatus?

ObjectMetricSource
  1 target CrossVersionObjectReference
  2 metricName string
  3 targetValue quantity
  4 selector *meta.v1.LabelSelector?
  5 averageValue *quantity?

ObjectMetricStatus
  1 target CrossVersionObjectReference
  2 metricName string
  3 currentValue quantity
  4 selector *meta.v1.LabelSelector?
  5 averageValue *quantity?

PodsMetricSource
  1 metricName string
  2 targetAverageValue quantity
  3 selector *meta.v1.LabelSelector?

PodsMetricStatus
  1 metricName string
  2 currentAverageValue quantity
  3 selector *meta.v1.LabelSelector?

ResourceMetricSource
  1 name string
  2 targetAverageUtilization *int32?
  3 targetAverageValue *quantity?

ResourceMetricStatus
  1 name string
  2 currentAverageUtilization *int32?
  3 currentAverageValue quantity

Scale kind
  1 metadata meta.v1.ObjectMeta
  2 spec ScaleSpec
  3 status ScaleStatus

ScaleSpec
  1 replicas int32?

ScaleStatus
  1 replicas int32
  2 selector string?
"""
