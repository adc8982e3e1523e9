"""Messages of apps.v1; written by scripts/protobuf_tables.py."""

TABLE = """
ControllerRevision kind
  1 metadata meta.v1.ObjectMeta
  2 data raw
  3 revision int64

ControllerRevisionList kind
  1 metadata meta.v1.ListMeta
  2 items []ControllerRevision

DaemonSet kind
  1 metadata meta.v1.ObjectMeta
  2 spec DaemonSetSpec
  3 status DaemonSetStatus

DaemonSetCondition
  1 type string
  2 status string
  3 lastTransitionTime time
  4 reason string?
  5 message string?

DaemonSetList kind
  1 metadata meta.v1.ListMeta
  2 items []DaemonSet

DaemonSetSpec
  1 selector *meta.v1.LabelSelector
  2 template core.v1.PodTemplateSpec
  3 updateStrategy DaemonSetUpdateStrategy
  4 minReadySeconds int32?
  6 revisionHistoryLimit *int32?

DaemonSetStatus
  1 currentNumberScheduled int32
  2 numberMisscheduled int32
  3 desiredNumberScheduled int32
  4 numberReady int32
  5 observedGeneration int64?
  6 updatedNumberScheduled int32?
  7 numberAvailable int32?
  8 numberUnavailable int32?
  9 collisionCount *int32?
  10 conditions []DaemonSetCondition?

DaemonSetUpdateStrategy
  1 type string?
  2 rollingUpdate *RollingUpdateDaemonSet?

Deployment kind
  1 metadata meta.v1.ObjectMeta
  2 spec DeploymentSpec
  3 status DeploymentStatus

DeploymentCondition
  1 type string
  2 status string
  4 reason string?
  5 message string?
  6 lastUpdateTime time
  7 lastTransitionTime time

DeploymentList kind
  1 metadata meta.v1.ListMeta
  2 items []Deployment

DeploymentSpec
  1 replicas *int32?
  2 selector *meta.v1.LabelSelector
  3 template core.v1.PodTemplateSpec
  4 strategy DeploymentStrategy
  5 minReadySeconds int32?
  6 revisionHistoryLimit *int32?
  7 paused bool?
  9 progressDeadlineSeconds *int32?

DeploymentStatus
  1 observedGeneration int64?
  2 replicas int32?
  3 updatedReplicas int32?
  4 availableReplicas int32?
  5 unavailableReplicas int32?
  6 conditions []DeploymentCondition?
  7 readyReplicas int32?
  8 collisionCount *int32?
  9 terminatingReplicas *int32?

DeploymentStrategy
  1 type string?
  2 rollingUpdate *RollingUpdateDeployment?

ReplicaSet kind
  1 metadata meta.v1.ObjectMeta
  2 spec ReplicaSetSpec
  3 status ReplicaSetStatus

ReplicaSetCondition
  1 type string
  2 status string
  3 lastTransitionTime time
  4 reason string?
  5 message string?

ReplicaSetList kind
  1 metadata meta.v1.ListMeta
  2 items []ReplicaSet

ReplicaSetSpec
  1 replicas *int32?
  2 selector *meta.v1.LabelSelector
  3 template core.v1.PodTemplateSpec
  4 minReadySeconds int32?

ReplicaSetStatus
  1 replicas int32
  2 fullyLabeledReplicas int32?
  3 observedGeneration int64?
  4 readyReplicas int32?
  5 availableReplicas int32?
  6 conditions []ReplicaSetCondition?
  7 terminatingReplicas *int32?

RollingUpdateDaemonSet
  1 maxUnavailable *intstr?
  2 maxSurge *intstr?

RollingUpdateDeployment
  1 maxUnavailable *intstr?
  2 maxSurge *intstr?

RollingUpdateStatefulSetStrategy
  1 partition *int32?
  2 maxUnavailable *intstr?

StatefulSet kind
  1 metadata meta.v1.ObjectMeta
  2 spec StatefulSetSpec
  3 status StatefulSetStatus

StatefulSetCondition
  1 type string
  2 status string
  3 lastTransitionTime time
  4 reason string?
  5 message string?

StatefulSetList kind
  1 metadata meta.v1.ListMeta
  2 items []StatefulSet

StatefulSetOrdinals
  1 start int32

StatefulSetPersistentVolumeClaimRetentionPolicy
  1 whenDeleted string?
  2 whenScaled string?

StatefulSetSpec
  1 replicas *int32?
  2 selector *meta.v1.LabelSelector
  3 template core.v1.PodTemplateSpec
  4 volumeClaimTemplates []core.v1.PersistentVolumeClaim?
  5 serviceName string
  6 podManagementPolicy string?
  7 updateStrategy StatefulSetUpdateStrategy
  8 revisionHistoryLimit *int32?
  9 minReadySeconds int32?
  10 persistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy?
  11 ordinals *StatefulSetOrdinals?

StatefulSetStatus
  1 observedGeneration int64?
  2 replicas int32
  3 readyReplicas int32?
  4 currentReplicas int32?
  5 updatedReplicas int32?
  6 currentRevision string?
  7 updateRevision string?
  9 collisionCount *int32?
  10 conditions []StatefulSetCondition?
  11 availableReplicas int32

StatefulSetUpdateStrategy
  1 type string?
  2 rollingUpdate *RollingUpdateStatefulSetStrategy?
"""
