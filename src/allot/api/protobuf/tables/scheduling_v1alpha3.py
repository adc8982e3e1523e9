"""Messages of scheduling.v1alpha3; written by scripts/protobuf_tables.py."""

TABLE = """
AllCompositeDisruptionMode

AllDisruptionMode

BasicSchedulingPolicy

CompositeBasicSchedulingPolicy

CompositeDisruptionMode
  1 single *SingleCompositeDisruptionMode?
  2 all *AllCompositeDisruptionMode?

CompositeGangSchedulingPolicy
  1 minGroupCount int32

CompositePodGroup kind
  1 metadata meta.v1.ObjectMeta
  2 spec CompositePodGroupSpec
  3 status CompositePodGroupStatus

CompositePodGroupList kind
  1 metadata meta.v1.ListMeta
  2 items []CompositePodGroup

CompositePodGroupSchedulingConstraints
  1 topology []TopologyConstraint?

CompositePodGroupSchedulingPolicy
  1 basic *CompositeBasicSchedulingPolicy?
  2 gang *CompositeGangSchedulingPolicy?

CompositePodGroupSpec
  1 parentCompositePodGroupName *string?
  2 workloadRef *WorkloadReference
  3 schedulingPolicy CompositePodGroupSchedulingPolicy
  4 schedulingConstraints *CompositePodGroupSchedulingConstraints?
  5 disruptionMode *CompositeDisruptionMode?
  6 priorityClassName string?
  7 priority *int32?
  8 preemptionPolicy *string?

CompositePodGroupStatus
  1 conditions []meta.v1.Condition?

CompositePodGroupTemplate
  1 name string
  2 schedulingPolicy CompositePodGroupSchedulingPolicy
  3 schedulingConstraints *CompositePodGroupSchedulingConstraints?
  4 disruptionMode *CompositeDisruptionMode?
  5 priorityClassName string?
  6 priority *int32?
  7 preemptionPolicy *string?
  8 podGroupTemplates []PodGroupTemplate?
  9 compositePodGroupTemplates []CompositePodGroupTemplate?

DisruptionMode
  1 single *SingleDisruptionMode?
  2 all *AllDisruptionMode?

GangSchedulingPolicy
  1 minCount int32

PodGroup kind
  1 metadata meta.v1.ObjectMeta
  2 spec PodGroupSpec
  3 status PodGroupStatus

PodGroupList kind
  1 metadata meta.v1.ListMeta
  2 items []PodGroup

PodGroupResourceClaim
  1 name string
  2 resourceClaimName *string?
  3 resourceClaimTemplateName *string?

PodGroupResourceClaimStatus
  1 name string
  2 resourceClaimName *string?

PodGroupSchedulingConstraints
  1 topology []TopologyConstraint?

PodGroupSchedulingPolicy
  1 basic *BasicSchedulingPolicy?
  2 gang *GangSchedulingPolicy?

PodGroupSpec
  1 parentCompositePodGroupName *string?
  2 workloadRef *WorkloadReference?
  3 schedulingPolicy PodGroupSchedulingPolicy
  4 schedulingConstraints *PodGroupSchedulingConstraints?
  5 resourceClaims []PodGroupResourceClaim?
  6 disruptionMode *DisruptionMode?
  7 priorityClassName string?
  8 priority *int32?
  9 preemptionPolicy *string?

PodGroupStatus
  1 conditions []meta.v1.Condition?
  2 resourceClaimStatuses []PodGroupResourceClaimStatus?

PodGroupTemplate
  1 name string
  2 schedulingPolicy PodGroupSchedulingPolicy
  3 schedulingConstraints *PodGroupSchedulingConstraints
  4 resourceClaims []PodGroupResourceClaim?
  5 disruptionMode *DisruptionMode?
  6 priorityClassName string?
  7 priority *int32?
  8 preemptionPolicy *string?

SingleCompositeDisruptionMode

SingleDisruptionMode

TopologyConstraint
  1 key string

TypedLocalObjectReference
  1 apiGroup string?
  2 kind string
  3 name string

Workload kind
  1 metadata meta.v1.ObjectMeta
  2 spec WorkloadSpec

WorkloadCompositePodGroupAllDisruptionMode

WorkloadCompositePodGroupBasicSchedulingPolicy

WorkloadCompositePodGroupDisruptionMode
  1 single *WorkloadCompositePodGroupSingleDisruptionMode?
  2 all *WorkloadCompositePodGroupAllDisruptionMode?

WorkloadCompositePodGroupGangSchedulingPolicy
  1 minGroupCount *int32?

WorkloadCompositePodGroupSchedulingConstraints
  1 topology []TopologyConstraint?

WorkloadCompositePodGroupSchedulingPolicy
  1 basic *WorkloadCompositePodGroupBasicSchedulingPolicy?
  2 gang *WorkloadCompositePodGroupGangSchedulingPolicy?

WorkloadCompositePodGroupSingleDisruptionMode

WorkloadList kind
  1 metadata meta.v1.ListMeta
  2 items []Workload

WorkloadPodGroupAllDisruptionMode

WorkloadPodGroupBasicSchedulingPolicy

WorkloadPodGroupDisruptionMode
  1 single *WorkloadPodGroupSingleDisruptionMode?
  2 all *WorkloadPodGroupAllDisruptionMode?

WorkloadPodGroupGangSchedulingPolicy
  1 minCount *int32?

WorkloadPodGroupResourceClaim
  1 name string
  2 resourceClaimName *string?
  3 resourceClaimTemplateName *string?

WorkloadPodGroupSchedulingConstraints
  1 topology []TopologyConstraint?

WorkloadPodGroupSchedulingPolicy
  1 basic *WorkloadPodGroupBasicSchedulingPolicy?
  2 gang *WorkloadPodGroupGangSchedulingPolicy?

WorkloadPodGroupSingleDisruptionMode

WorkloadReference
  1 workloadName string
  2 templateName string

WorkloadSpec
  1 controllerRef *TypedLocalObjectReference?
  2 podGroupTemplates []PodGroupTemplate
  3 compositePodGroupTemplates []CompositePodGroupTemplate?
"""
