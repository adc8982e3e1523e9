"""Messages of resource.v1beta2; written by scripts/protobuf_tables.py."""

TABLE = """
AllocatedDeviceStatus
  1 driver string
  2 pool string
  3 device string
  4 conditions []meta.v1.Condition
  5 data *raw?
  6 networkData *NetworkDeviceData?
  7 shareID *string?

AllocationResult
  1 devices DeviceAllocationResult
  3 nodeSelector *core.v1.NodeSelector?
  5 allocationTimestamp *time?

CELDeviceSelector
  1 expression string

CapacityRequestPolicy
  1 default *quantity
  3 validValues []quantity?
  4 validRange *CapacityRequestPolicyRange?

CapacityRequestPolicyRange
  1 min *quantity?
  2 max *quantity?
  3 step *quantity?

CapacityRequirements
  1 requests {}quantity?

Counter
  1 value quantity

CounterSet
  1 name string
  2 counters {}Counter?

Device
  1 name string
  2 attributes {}DeviceAttribute?
  3 capacity {}DeviceCapacity?
  4 consumesCounters []DeviceCounterConsumption?
  5 nodeName *string?
  6 nodeSelector *core.v1.NodeSelector?
  7 allNodes *bool?
  8 taints []DeviceTaint?
  9 bindsToNode *bool?
  10 bindingConditions []string?
  11 bindingFailureConditions []string?
  12 allowMultipleAllocations *bool?
  14 nodeAllocatableResources {}NodeAllocatableResource?

DeviceAllocationConfiguration
  1 source string
  2 requests []string?
  3 - DeviceConfiguration

DeviceAllocationResult
  1 results []DeviceRequestAllocationResult?
  2 config []DeviceAllocationConfiguration?

DeviceAttribute
  2 int *int64?
  3 bool *bool?
  4 string *string?
  5 version *string?
  6 ints []int64?
  7 bools []bool?
  8 strings []string?
  9 versions []string?

DeviceCapacity
  1 value quantity
  2 requestPolicy *CapacityRequestPolicy?

DeviceClaim
  1 requests []DeviceRequest
  2 constraints []DeviceConstraint?
  3 config []DeviceClaimConfiguration?

DeviceClaimConfiguration
  1 requests []string?
  2 - DeviceConfiguration

DeviceClass kind
  1 metadata meta.v1.ObjectMeta
  2 spec DeviceClassSpec

DeviceClassConfiguration
  1 - DeviceConfiguration

DeviceClassList kind
  1 metadata meta.v1.ListMeta
  2 items []DeviceClass

DeviceClassSpec
  1 selectors []DeviceSelector?
  2 config []DeviceClassConfiguration?
  4 extendedResourceName *string?

DeviceConfiguration
  1 opaque *OpaqueDeviceConfiguration?

DeviceConstraint
  1 requests []string?
  2 matchAttribute *string?
  3 distinctAttribute *string?

DeviceCounterConsumption
  1 counterSet string
  2 counters {}Counter?
  3 compatibilityGroups []string?

DeviceDerivedAttribute
  1 name string
  2 expression string

DeviceRequest
  1 name string
  2 exactly *ExactDeviceRequest?
  3 firstAvailable []DeviceSubRequest?

DeviceRequestAllocationResult
  1 request string
  2 driver string
  3 pool string
  4 device string
  5 adminAccess *bool?
  6 tolerations []DeviceToleration?
  7 bindingConditions []string?
  8 bindingFailureConditions []string?
  9 shareID *string?
  10 consumedCapacity {}quantity?
  11 skipNodeOperations []string?

DeviceSelector
  1 cel *CELDeviceSelector?

DeviceSubRequest
  1 name string
  2 deviceClassName string
  3 selectors []DeviceSelector?
  4 allocationMode string?
  5 count int64?
  6 tolerations []DeviceToleration?
  7 capacity *CapacityRequirements?
  8 derivedAttributes []DeviceDerivedAttribute?

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

DeviceToleration
  1 key string?
  2 operator string?
  3 value string?
  4 effect string?
  5 tolerationSeconds *int64?

ExactDeviceRequest
  1 deviceClassName string
  2 selectors []DeviceSelector?
  3 allocationMode string?
  4 count int64?
  5 adminAccess *bool?
  6 tolerations []DeviceToleration?
  7 capacity *CapacityRequirements?
  8 derivedAttributes []DeviceDerivedAttribute?

NetworkDeviceData
  1 interfaceName string?
  2 ips []string?
  3 hardwareAddress string?

NodeAllocatableMapping
  1 capacityKey *string?
  2 capacityMultiplier *quantity?
  3 deviceMultiplier *quantity?

NodeAllocatableOverhead
  1 perPod *quantity?
  2 perContainer *quantity?

NodeAllocatableResource
  3 mapping *NodeAllocatableMapping?
  4 overhead *NodeAllocatableOverhead?

OpaqueDeviceConfiguration
  1 driver string
  2 parameters raw

ResourceClaim kind
  1 metadata meta.v1.ObjectMeta
  2 spec ResourceClaimSpec
  3 status ResourceClaimStatus

ResourceClaimConsumerReference
  1 apiGroup string?
  3 resource string
  4 name string
  5 uid string

ResourceClaimList kind
  1 metadata meta.v1.ListMeta
  2 items []ResourceClaim

ResourceClaimSpec
  1 devices DeviceClaim

ResourceClaimStatus
  1 allocation *AllocationResult?
  2 reservedFor []ResourceClaimConsumerReference?
  4 devices []AllocatedDeviceStatus?

ResourceClaimTemplate kind
  1 metadata meta.v1.ObjectMeta
  2 spec ResourceClaimTemplateSpec

ResourceClaimTemplateList kind
  1 metadata meta.v1.ListMeta
  2 items []ResourceClaimTemplate

ResourceClaimTemplateSpec
  1 metadata meta.v1.ObjectMeta
  2 spec ResourceClaimSpec

ResourcePool
  1 name string
  2 generation int64
  3 resourceSliceCount int64

ResourceSlice kind
  1 metadata meta.v1.ObjectMeta
  2 spec ResourceSliceSpec

ResourceSliceList kind
  1 metadata meta.v1.ListMeta
  2 items []ResourceSlice

ResourceSliceSpec
  1 driver string
  2 pool ResourcePool
  3 nodeName *string?
  4 nodeSelector *core.v1.NodeSelector?
  5 allNodes *bool?
  6 devices []Device?
  7 perDeviceNodeSelection *bool?
  8 sharedCounters []CounterSet?
  9 partitionTypeAttribute *string?
  10 skipNodeOperations []string?
"""
