"""Messages of storage.v1; written by scripts/protobuf_tables.py."""

TABLE = """
CSIDriver kind
  1 metadata meta.v1.ObjectMeta
  2 spec CSIDriverSpec

CSIDriverList kind
  1 metadata meta.v1.ListMeta
  2 items []CSIDriver

CSIDriverSpec
  1 attachRequired *bool?
  2 podInfoOnMount *bool?
  3 volumeLifecycleModes []string?
  4 storageCapacity *bool?
  5 fsGroupPolicy *string?
  6 tokenRequests []TokenRequest?
  7 requiresRepublish *bool?
  8 seLinuxMount *bool?
  9 nodeAllocatableUpdatePeriodSeconds *int64?
  10 serviceAccountTokenInSecrets *bool?
  11 preventPodSchedulingIfMissing *bool?

CSINode kind
  1 metadata meta.v1.ObjectMeta
  2 spec CSINodeSpec
  3 status CSINodeStatus

CSINodeDriver
  1 name string
  2 nodeID string
  3 topologyKeys []string
  4 allocatable *VolumeNodeResources?

CSINodeList kind
  1 metadata meta.v1.ListMeta
  2 items []CSINode

CSINodeSpec
  1 drivers []CSINodeDriver

CSINodeStatus
  1 storageHealth []StorageHealth?

CSIStorageCapacity kind
  1 metadata meta.v1.ObjectMeta
  2 nodeTopology *meta.v1.LabelSelector?
  3 storageClassName string
  4 capacity *quantity?
  5 maximumVolumeSize *quantity?

CSIStorageCapacityList kind
  1 metadata meta.v1.ListMeta
  2 items []CSIStorageCapacity

StorageClass kind
  1 metadata meta.v1.ObjectMeta
  2 provisioner string
  3 parameters {}string?
  4 reclaimPolicy *string?
  5 mountOptions []string?
  6 allowVolumeExpansion *bool?
  7 volumeBindingMode *string?
  8 allowedTopologies []core.v1.TopologySelectorTerm?

StorageClassList kind
  1 metadata meta.v1.ListMeta
  2 items []StorageClass

StorageHealth
  1 name string
  2 healthConditions []StorageHealthCondition?

StorageHealthCondition
  1 status string
  2 reason string
  3 message string?
  4 accessMode *string?
  5 volumeMode *string?
  6 lastTransitionTime time

TokenRequest
  1 audience string
  2 expirationSeconds *int64?

VolumeAttachment kind
  1 metadata meta.v1.ObjectMeta
  2 spec VolumeAttachmentSpec
  3 status VolumeAttachmentStatus

VolumeAttachmentList kind
  1 metadata meta.v1.ListMeta
  2 items []VolumeAttachment

VolumeAttachmentSource
  1 persistentVolumeName *string?
  2 inlineVolumeSpec *core.v1.PersistentVolumeSpec?

VolumeAttachmentSpec
  1 attacher string
  2 source VolumeAttachmentSource
  3 nodeName string

VolumeAttachmentStatus
  1 attached bool
  2 attachmentMetadata {}string?
  3 attachError *VolumeError?
  4 detachError *VolumeError?

VolumeAttributesClass kind
  1 metadata meta.v1.ObjectMeta
  2 driverName string
  3 parameters {}string?

VolumeAttributesClassList kind
  1 metadata meta.v1.ListMeta
  2 items []VolumeAttributesClass

VolumeError
  1 time time
  2 message string?
  3 errorCode *int32?

VolumeNodeResources
  1 count *int32?
"""
