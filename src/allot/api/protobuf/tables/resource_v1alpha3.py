"""Messages of resource.v1alpha3; written by scripts/protobuf_tables.py."""

TABLE = """
CELDeviceSelector
  1 expression string

DeviceSelector
  1 cel *CELDeviceSelector?

DeviceTaint
  1 key string
  2 value string?
  3 effect string
  4 timeAdded *time?

DeviceTaintRule kind
  1 metadata meta.v1.ObjectMeta
  2 spec DeviceTaintRuleSpec
  3 status DeviceTaintRuleStatus

DeviceTaintRuleList kind
  1 metadata meta.v1.ListMeta
  2 items []DeviceTaintRule

DeviceTaintRuleSpec
  1 deviceSelector *DeviceTaintSelector?
  2 taint DeviceTaint

DeviceTaintRuleStatus
  1 conditions []meta.v1.Condition?

DeviceTaintSelector
  2 driver *string?
  3 pool *string?
  4 device *string?

PartitionTypeStatus
  1 type string?
  2 total *int32?
  3 allocatable *int32?
  4 attribute string?

PoolStatus
  1 driver string?
  2 poolName string?
  3 nodeName *string?
  4 totalDevices *int32?
  5 allocatedDevices *int32?
  6 availableDevices *int32?
  7 unavailableDevices *int32?
  8 resourceSliceCount *int32?
  9 generation int64
  10 validationError *string?
  11 partitionSummary []PartitionTypeStatus?
  13 shareableSummary *ShareableSummaryStatus?

ResourcePoolStatusRequest kind
  1 metadata meta.v1.ObjectMeta
  2 spec ResourcePoolStatusRequestSpec
  3 status *ResourcePoolStatusRequestStatus?

ResourcePoolStatusRequestList kind
  1 metadata meta.v1.ListMeta
  2 items []ResourcePoolStatusRequest

ResourcePoolStatusRequestSpec
  1 driver string
  2 poolName *string?
  3 limit *int32?
  4 defaultPartitionTypeAttribute *string?

ResourcePoolStatusRequestStatus
  2 pools []PoolStatus?
  3 conditions []meta.v1.Condition?
  6 poolCount *int32?

ShareableCapacityStatus
  1 name string?
  2 total *quantity?
  3 consumed *quantity?
  4 available *quantity?

ShareableSummaryStatus
  1 fullyAvailableDevices *int32?
  2 partiallyAvailableDevices *int32?
  3 capacity []ShareableCapacityStatus?
"""
