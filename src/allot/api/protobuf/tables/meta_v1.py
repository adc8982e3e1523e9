"""Messages of meta.v1; written by scripts/protobuf_tables.py."""

TABLE = """
APIGroup kind
  1 name string
  2 versions []GroupVersionForDiscovery
  3 preferredVersion GroupVersionForDiscovery
  4 serverAddressByClientCIDRs []ServerAddressByClientCIDR?

APIGroupList kind
  1 groups []APIGroup

APIResource
  1 name string
  2 namespaced bool
  3 kind string
  4 verbs strings
  5 shortNames []string?
  6 singularName string
  7 categories []string?
  8 group string?
  9 version string?
  10 storageVersionHash string?

APIResourceList kind
  1 groupVersion string
  2 resources []APIResource

APIVersions kind
  1 versions []string
  2 serverAddressByClientCIDRs []ServerAddressByClientCIDR

ApplyOptions kind
  1 dryRun []string?
  2 force bool
  3 fieldManager string

Condition
  1 type string
  2 status string
  3 observedGeneration int64?
  4 lastTransitionTime time
  5 reason string
  6 message string

CreateOptions kind
  1 dryRun []string?
  3 fieldManager string?
  4 fieldValidation string?

DeleteOptions kind
  1 gracePeriodSeconds *int64?
  2 preconditions *Preconditions?
  3 orphanDependents *bool?
  4 propagationPolicy *string?
  5 dryRun []string?
  6 ignoreStoreReadErrorWithClusterBreakingPotential *bool?

FieldSelectorRequirement
  1 key string
  2 operator string
  3 values []string?

GetOptions kind
  1 resourceVersion string?

GroupResource
  1 group string
  2 resource string

GroupVersion
  1 group string
  2 version string

GroupVersionForDiscovery
  1 groupVersion string
  2 version string

GroupVersionKind
  1 group string
  2 version string
  3 kind string

GroupVersionResource
  1 group string
  2 version string
  3 resource string

LabelSelector
  1 matchLabels {}string?
  2 matchExpressions []LabelSelectorRequirement?

LabelSelectorRequirement
  1 key string
  2 operator string
  3 values []string?

List kind
  1 metadata ListMeta
  2 items []raw

ListMeta
  1 selfLink string?
  2 resourceVersion string?
  3 continue string?
  4 remainingItemCount *int64?
  5 shardInfo *ShardInfo?

ListOptions kind
  1 labelSelector string?
  2 fieldSelector string?
  3 watch bool?
  4 resourceVersion string?
  5 timeoutSeconds *int64?
  7 limit int64?
  8 continue string?
  9 allowWatchBookmarks bool?
  10 resourceVersionMatch string?
  11 sendInitialEvents *bool?
  15 shardSelector string?

ManagedFieldsEntry
  1 manager string?
  2 operation string?
  3 apiVersion string?
  4 time *time?
  6 fieldsType string?
  7 fieldsV1 *fields?
  8 subresource string?

ObjectMeta
  1 name string?
  2 generateName string?
  3 namespace string?
  4 selfLink string?
  5 uid string?
  6 resourceVersion string?
  7 generation int64?
  8 creationTimestamp time?
  9 deletionTimestamp *time?
  10 deletionGracePeriodSeconds *int64?
  11 labels {}string?
  12 annotations {}string?
  13 ownerReferences []OwnerReference?
  14 finalizers []string?
  17 managedFields []ManagedFieldsEntry?

OwnerReference
  1 kind string
  3 name string
  4 uid string
  5 apiVersion string
  6 controller *bool?
  7 blockOwnerDeletion *bool?

PartialObjectMetadata kind
  1 metadata ObjectMeta

PartialObjectMetadataList kind
  1 metadata ListMeta
  2 items []PartialObjectMetadata

PatchOptions kind
  1 dryRun []string?
  2 force *bool?
  3 fieldManager string?
  4 fieldValidation string?

Preconditions
  1 uid *string?
  2 resourceVersion *string?

RootPaths
  1 paths []string

ServerAddressByClientCIDR
  1 clientCIDR string
  2 serverAddress string

ShardInfo
  1 selector string

Status kind
  1 metadata ListMeta
  2 status string?
  3 message string?
  4 reason string?
  5 details *StatusDetails?
  6 code int32?

StatusCause
  1 reason string?
  2 message string?
  3 field string?

StatusDetails
  1 name string?
  2 group string?
  3 kind string?
  4 causes []StatusCause?
  5 retryAfterSeconds int32?
  6 uid string?

TableOptions kind
  1 includeObject string?

Timestamp
  1 seconds int64
  2 nanos int32

TypeMeta
  1 kind string?
  2 apiVersion string?

UpdateOptions kind
  1 dryRun []string?
  2 fieldManager string?
  3 fieldValidation string?

WatchEvent
  1 type string
  2 object raw
"""
