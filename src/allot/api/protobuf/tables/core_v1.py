"""Messages of core.v1; written by scripts/protobuf_tables.py."""

TABLE = """
AWSElasticBlockStoreVolumeSource
  1 volumeID string
  2 fsType string?
  3 partition int32?
  4 readOnly bool?

Affinity
  1 nodeAffinity *NodeAffinity?
  2 podAffinity *PodAffinity?
  3 podAntiAffinity *PodAntiAffinity?

AppArmorProfile
  1 type string
  2 localhostProfile *string?

AttachedVolume
  1 name string
  2 devicePath string

AvoidPods
  1 preferAvoidPods []PreferAvoidPodsEntry?

AzureDiskVolumeSource
  1 diskName string
  2 diskURI string
  3 cachingMode *string?
  4 fsType *string?
  5 readOnly *bool?
  6 kind *string?

AzureFilePersistentVolumeSource
  1 secretName string
  2 shareName string
  3 readOnly bool?
  4 secretNamespace *string

AzureFileVolumeSource
  1 secretName string
  2 shareName string
  3 readOnly bool?

Binding kind
  1 metadata meta.v1.ObjectMeta
  2 target ObjectReference

CSIPersistentVolumeSource
  1 driver string
  2 volumeHandle string
  3 readOnly bool?
  4 fsType string?
  5 volumeAttributes {}string?
  6 controllerPublishSecretRef *SecretReference?
  7 nodeStageSecretRef *SecretReference?
  8 nodePublishSecretRef *SecretReference?
  9 controllerExpandSecretRef *SecretReference?
  10 nodeExpandSecretRef *SecretReference?

CSIVolumeSource
  1 driver string
  2 readOnly *bool?
  3 fsType *string?
  4 volumeAttributes {}string?
  5 nodePublishSecretRef *LocalObjectReference?

Capabilities
  1 add []string?
  2 drop []string?

CephFSPersistentVolumeSource
  1 monitors []string
  2 path string?
  3 user string?
  4 secretFile string?
  5 secretRef *SecretReference?
  6 readOnly bool?

CephFSVolumeSource
  1 monitors []string
  2 path string?
  3 user string?
  4 secretFile string?
  5 secretRef *LocalObjectReference?
  6 readOnly bool?

CinderPersistentVolumeSource
  1 volumeID string
  2 fsType string?
  3 readOnly bool?
  4 secretRef *SecretReference?

CinderVolumeSource
  1 volumeID string
  2 fsType string?
  3 readOnly bool?
  4 secretRef *LocalObjectReference?

ClientIPConfig
  1 timeoutSeconds *int32?

ClusterTrustBundleProjection
  1 name *string?
  2 signerName *string?
  3 labelSelector *meta.v1.LabelSelector?
  4 path string
  5 optional *bool?
  6 user *int64?

ComponentCondition
  1 type string
  2 status string
  3 message string?
  4 error string?

ComponentStatus kind
  1 metadata meta.v1.ObjectMeta
  2 conditions []ComponentCondition?

ComponentStatusList kind
  1 metadata meta.v1.ListMeta
  2 items []ComponentStatus

ConfigMap kind
  1 metadata meta.v1.ObjectMeta
  2 data {}string?
  3 binaryData {}bytes?
  4 immutable *bool?

ConfigMapEnvSource
  1 - LocalObjectReference
  2 optional *bool?

ConfigMapKeySelector
  1 - LocalObjectReference
  2 key string
  3 optional *bool?

ConfigMapList kind
  1 metadata meta.v1.ListMeta
  2 items []ConfigMap

ConfigMapNodeConfigSource
  1 namespace string
  2 name string
  3 uid string?
  4 resourceVersion string?
  5 kubeletConfigKey string

ConfigMapProjection
  1 - LocalObjectReference
  2 items []KeyToPath?
  4 optional *bool?

ConfigMapVolumeSource
  1 - LocalObjectReference
  2 items []KeyToPath?
  3 defaultMode *int32?
  4 optional *bool?
  5 defaultUser *int64?

Container
  1 name string
  2 image string?
  3 command []string?
  4 args []string?
  5 workingDir string?
  6 ports []ContainerPort?
  7 env []EnvVar?
  8 resources ResourceRequirements
  9 volumeMounts []VolumeMount?
  10 livenessProbe *Probe?
  11 readinessProbe *Probe?
  12 lifecycle *Lifecycle?
  13 terminationMessagePath string?
  14 imagePullPolicy string?
  15 securityContext *SecurityContext?
  16 stdin bool?
  17 stdinOnce bool?
  18 tty bool?
  19 envFrom []EnvFromSource?
  20 terminationMessagePolicy string?
  21 volumeDevices []VolumeDevice?
  22 startupProbe *Probe?
  23 resizePolicy []ContainerResizePolicy?
  24 restartPolicy *string?
  25 restartPolicyRules []ContainerRestartRule?

ContainerExtendedResourceRequest
  1 containerName string
  2 resourceName string
  3 requestName string

ContainerImage
  1 names []string
  2 sizeBytes int64?

ContainerPort
  1 name string?
  2 hostPort int32?
  3 containerPort int32
  4 protocol string?
  5 hostIP string?

ContainerResizePolicy
  1 resourceName string
  2 restartPolicy string

ContainerRestartRule
  1 action string?
  2 exitCodes *ContainerRestartRuleOnExitCodes?

ContainerRestartRuleOnExitCodes
  1 operator string?
  2 values []int32?

ContainerState
  1 waiting *ContainerStateWaiting?
  2 running *ContainerStateRunning?
  3 terminated *ContainerStateTerminated?

ContainerStateRunning
  1 startedAt time

ContainerStateTerminated
  1 exitCode int32
  2 signal int32?
  3 reason string?
  4 message string?
  5 startedAt time
  6 finishedAt time
  7 containerID string?

ContainerStateWaiting
  1 reason string?
  2 message string?

ContainerStatus
  1 name string
  2 state ContainerState
  3 lastState ContainerState
  4 ready bool
  5 restartCount int32
  6 image string
  7 imageID string
  8 containerID string?
  9 started *bool?
  10 allocatedResources {}quantity?
  11 resources *ResourceRequirements?
  12 volumeMounts []VolumeMountStatus?
  13 user *ContainerUser?
  14 allocatedResourcesStatus []ResourceStatus?
  15 stopSignal *string?

ContainerUser
  1 linux *LinuxContainerUser?

DaemonEndpoint
  1 Port int32

DownwardAPIProjection
  1 items []DownwardAPIVolumeFile?

DownwardAPIVolumeFile
  1 path string
  2 fieldRef *ObjectFieldSelector?
  3 resourceFieldRef *ResourceFieldSelector?
  4 mode *int32?
  5 user *int64?

DownwardAPIVolumeSource
  1 items []DownwardAPIVolumeFile?
  2 defaultMode *int32?
  3 defaultUser *int64?

EmptyDirVolumeSource
  1 medium string?
  2 sizeLimit *quantity?
  3 mode *int32?

EndpointAddress
  1 ip string
  2 targetRef *ObjectReference?
  3 hostname string?
  4 nodeName *string?

EndpointPort
  1 name string?
  2 port int32
  3 protocol string?
  4 appProtocol *string?

EndpointSubset
  1 addresses []EndpointAddress?
  2 notReadyAddresses []EndpointAddress?
  3 ports []EndpointPort?

Endpoints kind
  1 metadata meta.v1.ObjectMeta
  2 subsets []EndpointSubset?

EndpointsList kind
  1 metadata meta.v1.ListMeta
  2 items []Endpoints

EnvFromSource
  1 prefix string?
  2 configMapRef *ConfigMapEnvSource?
  3 secretRef *SecretEnvSource?

EnvVar
  1 name string
  2 value string?
  3 valueFrom *EnvVarSource?

EnvVarSource
  1 fieldRef *ObjectFieldSelector?
  2 resourceFieldRef *ResourceFieldSelector?
  3 configMapKeyRef *ConfigMapKeySelector?
  4 secretKeyRef *SecretKeySelector?
  5 fileKeyRef *FileKeySelector?

EphemeralContainer
  1 - EphemeralContainerCommon
  2 targetContainerName string?

EphemeralContainerCommon
  1 name string
  2 image string?
  3 command []string?
  4 args []string?
  5 workingDir string?
  6 ports []ContainerPort?
  7 env []EnvVar?
  8 resources ResourceRequirements
  9 volumeMounts []VolumeMount?
  10 livenessProbe *Probe?
  11 readinessProbe *Probe?
  12 lifecycle *Lifecycle?
  13 terminationMessagePath string?
  14 imagePullPolicy string?
  15 securityContext *SecurityContext?
  16 stdin bool?
  17 stdinOnce bool?
  18 tty bool?
  19 envFrom []EnvFromSource?
  20 terminationMessagePolicy string?
  21 volumeDevices []VolumeDevice?
  22 startupProbe *Probe?
  23 resizePolicy []ContainerResizePolicy?
  24 restartPolicy *string?
  25 restartPolicyRules []ContainerRestartRule?

EphemeralVolumeSource
  1 volumeClaimTemplate *PersistentVolumeClaimTemplate?

Event kind
  1 metadata meta.v1.ObjectMeta
  2 involvedObject ObjectReference
  3 reason string?
  4 message string?
  5 source EventSource
  6 firstTimestamp time
  7 lastTimestamp time
  8 count int32?
  9 type string?
  10 eventTime microtime
  11 series *EventSeries?
  12 action string?
  13 related *ObjectReference?
  14 reportingComponent string
  15 reportingInstance string

EventList kind
  1 metadata meta.v1.ListMeta
  2 items []Event

EventSeries
  1 count int32?
  2 lastObservedTime microtime

EventSource
  1 component string?
  2 host string?

EvictionResponder
  1 name string
  2 priority *int32

ExecAction
  1 command []string?

FCVolumeSource
  1 targetWWNs []string?
  2 lun *int32?
  3 fsType string?
  4 readOnly bool?
  5 wwids []string?

FileKeySelector
  1 volumeName string
  2 path string
  3 key string
  4 optional *bool?

FlexPersistentVolumeSource
  1 driver string
  2 fsType string?
  3 secretRef *SecretReference?
  4 readOnly bool?
  5 options {}string?

FlexVolumeSource
  1 driver string
  2 fsType string?
  3 secretRef *LocalObjectReference?
  4 readOnly bool?
  5 options {}string?

FlockerVolumeSource
  1 datasetName string?
  2 datasetUUID string?

GCEPersistentDiskVolumeSource
  1 pdName string
  2 fsType string?
  3 partition int32?
  4 readOnly bool?

GRPCAction
  1 port int32
  2 service *string
  3 mode *string?

GitRepoVolumeSource
  1 repository string
  2 revision string?
  3 directory string?

GlusterfsPersistentVolumeSource
  1 endpoints string
  2 path string
  3 readOnly bool?
  4 endpointsNamespace *string?

GlusterfsVolumeSource
  1 endpoints string
  2 path string
  3 readOnly bool?

HTTPGetAction
  1 path string?
  2 port intstr
  3 host string?
  4 scheme string?
  5 httpHeaders []HTTPHeader?
  6 protocol *string?

HTTPHeader
  1 name string
  2 value string

HostAlias
  1 ip string
  2 hostnames []string?

HostIP
  1 ip string

HostPathVolumeSource
  1 path string
  2 type *string?

ISCSIPersistentVolumeSource
  1 targetPortal string
  2 iqn string
  3 lun int32
  4 iscsiInterface string?
  5 fsType string?
  6 readOnly bool?
  7 portals []string?
  8 chapAuthDiscovery bool?
  10 secretRef *SecretReference?
  11 chapAuthSession bool?
  12 initiatorName *string?

ISCSIVolumeSource
  1 targetPortal string
  2 iqn string
  3 lun int32
  4 iscsiInterface string?
  5 fsType string?
  6 readOnly bool?
  7 portals []string?
  8 chapAuthDiscovery bool?
  10 secretRef *LocalObjectReference?
  11 chapAuthSession bool?
  12 initiatorName *string?

ImageVolumeSource
  1 reference string?
  2 pullPolicy string?

ImageVolumeStatus
  1 imageRef string?

KeyToPath
  1 key string
  2 path string
  3 mode *int32?
  4 user *int64?

Lifecycle
  1 postStart *LifecycleHandler?
  2 preStop *LifecycleHandler?
  3 stopSignal *string?

LifecycleHandler
  1 exec *ExecAction?
  2 httpGet *HTTPGetAction?
  3 tcpSocket *TCPSocketAction?
  4 sleep *SleepAction?

LimitRange kind
  1 metadata meta.v1.ObjectMeta
  2 spec LimitRangeSpec

LimitRangeItem
  1 type string
  2 max {}quantity?
  3 min {}quantity?
  4 default {}quantity?
  5 defaultRequest {}quantity?
  6 maxLimitRequestRatio {}quantity?

LimitRangeList kind
  1 metadata meta.v1.ListMeta
  2 items []LimitRange

LimitRangeSpec
  1 limits []LimitRangeItem

LinuxContainerUser
  1 uid int64
  2 gid int64
  3 supplementalGroups []int64?

List kind
  1 metadata meta.v1.ListMeta
  2 items []raw

LoadBalancerIngress
  1 ip string?
  2 hostname string?
  3 ipMode *string?
  4 ports []PortStatus?

LoadBalancerStatus
  1 ingress []LoadBalancerIngress?

LocalObjectReference
  1 name string?

LocalVolumeSource
  1 path string
  2 fsType *string?

ModifyVolumeStatus
  1 targetVolumeAttributesClassName string?
  2 status string

NFSVolumeSource
  1 server string
  2 path string
  3 readOnly bool?

Namespace kind
  1 metadata meta.v1.ObjectMeta
  2 spec NamespaceSpec
  3 status NamespaceStatus

NamespaceCondition
  1 type string
  2 status string
  4 lastTransitionTime time
  5 reason string?
  6 message string?

NamespaceList kind
  1 metadata meta.v1.ListMeta
  2 items []Namespace

NamespaceSpec
  1 finalizers []string?

NamespaceStatus
  1 phase string?
  2 conditions []NamespaceCondition?

Node kind
  1 metadata meta.v1.ObjectMeta
  2 spec NodeSpec
  3 status NodeStatus

NodeAddress
  1 type string
  2 address string

NodeAffinity
  1 requiredDuringSchedulingIgnoredDuringExecution *NodeSelector?
  2 preferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm?

NodeAllocatableMappedResources
  1 name string
  2 quantity *quantity

NodeAllocatableOverheadResources
  1 name string
  2 perPod *quantity?
  3 perContainer *quantity?

NodeAllocatableResourceClaimStatus
  1 resourceClaimName string
  2 containers []string?
  4 mapping []NodeAllocatableMappedResources?
  5 overhead []NodeAllocatableOverheadResources?

NodeCondition
  1 type string
  2 status string
  3 lastHeartbeatTime time
  4 lastTransitionTime time
  5 reason string?
  6 message string?

NodeConfigSource
  2 configMap *ConfigMapNodeConfigSource?

NodeConfigStatus
  1 assigned *NodeConfigSource?
  2 active *NodeConfigSource?
  3 lastKnownGood *NodeConfigSource?
  4 error string?

NodeDaemonEndpoints
  1 kubeletEndpoint DaemonEndpoint

NodeFeatures
  1 supplementalGroupsPolicy *bool?

NodeList kind
  1 metadata meta.v1.ListMeta
  2 items []Node

NodePodPreemptionPolicy
  1 disableResizePreemption []string?

NodeProxyOptions kind
  1 path string?

NodeRuntimeHandler
  1 name string
  2 features *NodeRuntimeHandlerFeatures?

NodeRuntimeHandlerFeatures
  1 recursiveReadOnlyMounts *bool?
  2 userNamespaces *bool?

NodeSelector
  1 nodeSelectorTerms []NodeSelectorTerm

NodeSelectorRequirement
  1 key string
  2 operator string
  3 values []string?

NodeSelectorTerm
  1 matchExpressions []NodeSelectorRequirement?
  2 matchFields []NodeSelectorRequirement?

NodeSpec
  1 podCIDR string?
  2 externalID string?
  3 providerID string?
  4 unschedulable bool?
  5 taints []Taint?
  6 configSource *NodeConfigSource?
  7 podCIDRs []string?
  8 podPreemptionPolicy *NodePodPreemptionPolicy?

NodeStatus
  1 capacity {}quantity?
  2 allocatable {}quantity?
  3 phase string?
  4 conditions []NodeCondition?
  5 addresses []NodeAddress?
  6 daemonEndpoints NodeDaemonEndpoints
  7 nodeInfo NodeSystemInfo
  8 images []ContainerImage?
  9 volumesInUse []string?
  10 volumesAttached []AttachedVolume?
  11 config *NodeConfigStatus?
  12 runtimeHandlers []NodeRuntimeHandler?
  13 features *NodeFeatures?
  14 declaredFeatures []string?

NodeSwapStatus
  1 capacity *int64?

NodeSystemInfo
  1 machineID string
  2 systemUUID string
  3 bootID string
  4 kernelVersion string
  5 osImage string
  6 containerRuntimeVersion string
  7 kubeletVersion string
  8 kubeProxyVersion string
  9 operatingSystem string
  10 architecture string
  11 swap *NodeSwapStatus?
  12 runningInUserNamespace *bool?

ObjectFieldSelector
  1 apiVersion string?
  2 fieldPath string

ObjectReference
  1 kind string?
  2 namespace string?
  3 name string?
  4 uid string?
  5 apiVersion string?
  6 resourceVersion string?
  7 fieldPath string?

PersistentVolume kind
  1 metadata meta.v1.ObjectMeta
  2 spec PersistentVolumeSpec
  3 status PersistentVolumeStatus

PersistentVolumeClaim kind
  1 metadata meta.v1.ObjectMeta
  2 spec PersistentVolumeClaimSpec
  3 status PersistentVolumeClaimStatus

PersistentVolumeClaimCondition
  1 type string
  2 status string
  3 lastProbeTime time
  4 lastTransitionTime time
  5 reason string?
  6 message string?

PersistentVolumeClaimList kind
  1 metadata meta.v1.ListMeta
  2 items []PersistentVolumeClaim

PersistentVolumeClaimSpec
  1 accessModes []string?
  2 resources VolumeResourceRequirements
  3 volumeName string?
  4 selector *meta.v1.LabelSelector?
  5 storageClassName *string?
  6 volumeMode *string?
  7 dataSource *TypedLocalObjectReference?
  8 dataSourceRef *TypedObjectReference?
  9 volumeAttributesClassName *string?

PersistentVolumeClaimStatus
  1 phase string?
  2 accessModes []string?
  3 capacity {}quantity?
  4 conditions []PersistentVolumeClaimCondition?
  5 allocatedResources {}quantity?
  7 allocatedResourceStatuses {}string?
  8 currentVolumeAttributesClassName *string?
  9 modifyVolumeStatus *ModifyVolumeStatus?
  10 healthStatus *VolumeHealthStatus?

PersistentVolumeClaimTemplate
  1 metadata meta.v1.ObjectMeta
  2 spec PersistentVolumeClaimSpec

PersistentVolumeClaimVolumeSource
  1 claimName string
  2 readOnly bool?

PersistentVolumeList kind
  1 metadata meta.v1.ListMeta
  2 items []PersistentVolume

PersistentVolumeSource
  1 gcePersistentDisk *GCEPersistentDiskVolumeSource?
  2 awsElasticBlockStore *AWSElasticBlockStoreVolumeSource?
  3 hostPath *HostPathVolumeSource?
  4 glusterfs *GlusterfsPersistentVolumeSource?
  5 nfs *NFSVolumeSource?
  6 rbd *RBDPersistentVolumeSource?
  7 iscsi *ISCSIPersistentVolumeSource?
  8 cinder *CinderPersistentVolumeSource?
  9 cephfs *CephFSPersistentVolumeSource?
  10 fc *FCVolumeSource?
  11 flocker *FlockerVolumeSource?
  12 flexVolume *FlexPersistentVolumeSource?
  13 azureFile *AzureFilePersistentVolumeSource?
  14 vsphereVolume *VsphereVirtualDiskVolumeSource?
  15 quobyte *QuobyteVolumeSource?
  16 azureDisk *AzureDiskVolumeSource?
  17 photonPersistentDisk *PhotonPersistentDiskVolumeSource?
  18 portworxVolume *PortworxVolumeSource?
  19 scaleIO *ScaleIOPersistentVolumeSource?
  20 local *LocalVolumeSource?
  21 storageos *StorageOSPersistentVolumeSource?
  22 csi *CSIPersistentVolumeSource?

PersistentVolumeSpec
  1 capacity {}quantity?
  2 - PersistentVolumeSource
  3 accessModes []string?
  4 claimRef *ObjectReference?
  5 persistentVolumeReclaimPolicy string?
  6 storageClassName string?
  7 mountOptions []string?
  8 volumeMode *string?
  9 nodeAffinity *VolumeNodeAffinity?
  10 volumeAttributesClassName *string?

PersistentVolumeStatus
  1 phase string?
  2 message string?
  3 reason string?
  4 lastPhaseTransitionTime *time?

PhotonPersistentDiskVolumeSource
  1 pdID string
  2 fsType string?

Pod kind
  1 metadata meta.v1.ObjectMeta
  2 spec PodSpec
  3 status PodStatus

PodAffinity
  1 requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm?
  2 preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm?

PodAffinityTerm
  1 labelSelector *meta.v1.LabelSelector?
  2 namespaces []string?
  3 topologyKey string
  4 namespaceSelector *meta.v1.LabelSelector?
  5 matchLabelKeys []string?
  6 mismatchLabelKeys []string?

PodAntiAffinity
  1 requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm?
  2 preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm?

PodAttachOptions kind
  1 stdin bool?
  2 stdout bool?
  3 stderr bool?
  4 tty bool?
  5 container string?

PodCertificateProjection
  1 signerName string?
  2 keyType string?
  3 maxExpirationSeconds *int32?
  4 credentialBundlePath string?
  5 keyPath string?
  6 certificateChainPath string?
  7 userAnnotations {}string?
  8 user *int64?

PodCondition
  1 type string
  2 status string
  3 lastProbeTime time
  4 lastTransitionTime time
  5 reason string?
  6 message string?
  7 observedGeneration int64?

PodDNSConfig
  1 nameservers []string?
  2 searches []string?
  3 options []PodDNSConfigOption?

PodDNSConfigOption
  1 name string?
  2 value *string?

PodExecOptions kind
  1 stdin bool?
  2 stdout bool?
  3 stderr bool?
  4 tty bool?
  5 container string?
  6 command []string

PodExtendedResourceClaimStatus
  1 requestMappings []ContainerExtendedResourceRequest
  2 resourceClaimName string

PodIP
  1 ip string

PodList kind
  1 metadata meta.v1.ListMeta
  2 items []Pod

PodLogOptions kind
  1 container string?
  2 follow bool?
  3 previous bool?
  4 sinceSeconds *int64?
  5 sinceTime *time?
  6 timestamps bool?
  7 tailLines *int64?
  8 limitBytes *int64?
  9 insecureSkipTLSVerifyBackend bool?
  10 stream *string?

PodOS
  1 name string

PodPortForwardOptions kind
  1 ports []int32?

PodProxyOptions kind
  1 path string?

PodReadinessGate
  1 conditionType string

PodResourceClaim
  1 name string
  3 resourceClaimName *string?
  4 resourceClaimTemplateName *string?

PodResourceClaimStatus
  1 name string
  2 resourceClaimName *string?

PodSchedulingGate
  1 name string

PodSchedulingGroup
  1 podGroupName *string?

PodSecurityContext
  1 seLinuxOptions *SELinuxOptions?
  2 runAsUser *int64?
  3 runAsNonRoot *bool?
  4 supplementalGroups []int64?
  5 fsGroup *int64?
  6 runAsGroup *int64?
  7 sysctls []Sysctl?
  8 windowsOptions *WindowsSecurityContextOptions?
  9 fsGroupChangePolicy *string?
  10 seccompProfile *SeccompProfile?
  11 appArmorProfile *AppArmorProfile?
  12 supplementalGroupsPolicy *string?
  13 seLinuxChangePolicy *string?

PodSignature
  1 podController *meta.v1.OwnerReference?

PodSpec
  1 volumes []Volume?
  2 containers []Container
  3 restartPolicy string?
  4 terminationGracePeriodSeconds *int64?
  5 activeDeadlineSeconds *int64?
  6 dnsPolicy string?
  7 nodeSelector {}string?
  8 serviceAccountName string?
  9 serviceAccount string?
  10 nodeName string?
  11 hostNetwork bool?
  12 hostPID bool?
  13 hostIPC bool?
  14 securityContext *PodSecurityContext?
  15 imagePullSecrets []LocalObjectReference?
  16 hostname string?
  17 subdomain string?
  18 affinity *Affinity?
  19 schedulerName string?
  20 initContainers []Container?
  21 automountServiceAccountToken *bool?
  22 tolerations []Toleration?
  23 hostAliases []HostAlias?
  24 priorityClassName string?
  25 priority *int32?
  26 dnsConfig *PodDNSConfig?
  27 shareProcessNamespace *bool?
  28 readinessGates []PodReadinessGate?
  29 runtimeClassName *string?
  30 enableServiceLinks *bool?
  31 preemptionPolicy *string?
  32 overhead {}quantity?
  33 topologySpreadConstraints []TopologySpreadConstraint?
  34 ephemeralContainers []EphemeralContainer?
  35 setHostnameAsFQDN *bool?
  36 os *PodOS?
  37 hostUsers *bool?
  38 schedulingGates []PodSchedulingGate?
  39 resourceClaims []PodResourceClaim?
  40 resources *ResourceRequirements?
  41 hostnameOverride *string?
  43 schedulingGroup *PodSchedulingGroup?
  44 evictionResponders []EvictionResponder?

PodStatus
  1 phase string?
  2 conditions []PodCondition?
  3 message string?
  4 reason string?
  5 hostIP string?
  6 podIP string?
  7 startTime *time?
  8 containerStatuses []ContainerStatus?
  9 qosClass string?
  10 initContainerStatuses []ContainerStatus?
  11 nominatedNodeName string?
  12 podIPs []PodIP?
  13 ephemeralContainerStatuses []ContainerStatus?
  14 resize string?
  15 resourceClaimStatuses []PodResourceClaimStatus?
  16 hostIPs []HostIP?
  17 observedGeneration int64?
  18 extendedResourceClaimStatus *PodExtendedResourceClaimStatus?
  19 allocatedResources {}quantity?
  20 resources *ResourceRequirements?
  21 nodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus?
  22 volumeHealth []PodVolumeHealth?

PodTemplate kind
  1 metadata meta.v1.ObjectMeta
  2 template PodTemplateSpec

PodTemplateList kind
  1 metadata meta.v1.ListMeta
  2 items []PodTemplate

PodTemplateSpec
  1 metadata meta.v1.ObjectMeta
  2 spec PodSpec

PodVolumeHealth
  1 name string
  2 healthConditions []VolumeHealthCondition?
  3 lastTransitionTime time

PortStatus
  1 port int32
  2 protocol string
  3 error *string?

PortworxVolumeSource
  1 volumeID string
  2 fsType string?
  3 readOnly bool?

Preconditions
  1 uid *string?

PreferAvoidPodsEntry
  1 podSignature PodSignature
  2 evictionTime time
  3 reason string?
  4 message string?

PreferredSchedulingTerm
  1 weight int32
  2 preference NodeSelectorTerm

Probe
  1 - ProbeHandler
  2 initialDelaySeconds int32?
  3 timeoutSeconds int32?
  4 periodSeconds int32?
  5 successThreshold int32?
  6 failureThreshold int32?
  7 terminationGracePeriodSeconds *int64?

ProbeHandler
  1 exec *ExecAction?
  2 httpGet *HTTPGetAction?
  3 tcpSocket *TCPSocketAction?
  4 grpc *GRPCAction?

ProjectedVolumeSource
  1 sources []VolumeProjection
  2 defaultMode *int32?
  3 defaultUser *int64?

QuobyteVolumeSource
  1 registry string
  2 volume string
  3 readOnly bool?
  4 user string?
  5 group string?
  6 tenant string?

RBDPersistentVolumeSource
  1 monitors []string
  2 image string
  3 fsType string?
  4 pool string?
  5 user string?
  6 keyring string?
  7 secretRef *SecretReference?
  8 readOnly bool?

RBDVolumeSource
  1 monitors []string
  2 image string
  3 fsType string?
  4 pool string?
  5 user string?
  6 keyring string?
  7 secretRef *LocalObjectReference?
  8 readOnly bool?

RangeAllocation kind
  1 metadata meta.v1.ObjectMeta
  2 range string
  3 data bytes

ReplicationController kind
  1 metadata meta.v1.ObjectMeta
  2 spec ReplicationControllerSpec
  3 status ReplicationControllerStatus

ReplicationControllerCondition
  1 type string
  2 status string
  3 lastTransitionTime time
  4 reason string?
  5 message string?

ReplicationControllerList kind
  1 metadata meta.v1.ListMeta
  2 items []ReplicationController

ReplicationControllerSpec
  1 replicas *int32?
  2 selector {}string?
  3 template *PodTemplateSpec?
  4 minReadySeconds int32?

ReplicationControllerStatus
  1 replicas int32
  2 fullyLabeledReplicas int32?
  3 observedGeneration int64?
  4 readyReplicas int32?
  5 availableReplicas int32?
  6 conditions []ReplicationControllerCondition?

ResourceClaim
  1 name string
  2 request string?

ResourceFieldSelector
  1 containerName string?
  2 resource string
  3 divisor quantity

ResourceHealth
  1 resourceID string
  2 health string?
  6 message *string?

ResourceQuota kind
  1 metadata meta.v1.ObjectMeta
  2 spec ResourceQuotaSpec
  3 status ResourceQuotaStatus

ResourceQuotaList kind
  1 metadata meta.v1.ListMeta
  2 items []ResourceQuota

ResourceQuotaSpec
  1 hard {}quantity?
  2 scopes []string?
  3 scopeSelector *ScopeSelector?

ResourceQuotaStatus
  1 hard {}quantity?
  2 used {}quantity?

ResourceRequirements
  1 limits {}quantity?
  2 requests {}quantity?
  3 claims []ResourceClaim?

ResourceStatus
  1 name string
  2 resources []ResourceHealth?

SELinuxOptions
  1 user string?
  2 role string?
  3 type string?
  4 level string?

ScaleIOPersistentVolumeSource
  1 gateway string
  2 system string
  3 secretRef *SecretReference
  4 sslEnabled bool?
  5 protectionDomain string?
  6 storagePool string?
  7 storageMode string?
  8 volumeName string?
  9 fsType string?
  10 readOnly bool?

ScaleIOVolumeSource
  1 gateway string
  2 system string
  3 secretRef *LocalObjectReference
  4 sslEnabled bool?
  5 protectionDomain string?
  6 storagePool string?
  7 storageMode string?
  8 volumeName string?
  9 fsType string?
  10 readOnly bool?

ScopeSelector
  1 matchExpressions []ScopedResourceSelectorRequirement?

ScopedResourceSelectorRequirement
  1 scopeName string
  2 operator string
  3 values []string?

SeccompProfile
  1 type string
  2 localhostProfile *string?

Secret kind
  1 metadata meta.v1.ObjectMeta
  2 data {}bytes?
  3 type string?
  4 stringData {}string?
  5 immutable *bool?

SecretEnvSource
  1 - LocalObjectReference
  2 optional *bool?

SecretKeySelector
  1 - LocalObjectReference
  2 key string
  3 optional *bool?

SecretList kind
  1 metadata meta.v1.ListMeta
  2 items []Secret

SecretProjection
  1 - LocalObjectReference
  2 items []KeyToPath?
  4 optional *bool?

SecretReference
  1 name string?
  2 namespace string?

SecretVolumeSource
  1 secretName string?
  2 items []KeyToPath?
  3 defaultMode *int32?
  4 optional *bool?
  5 defaultUser *int64?

SecurityContext
  1 capabilities *Capabilities?
  2 privileged *bool?
  3 seLinuxOptions *SELinuxOptions?
  4 runAsUser *int64?
  5 runAsNonRoot *bool?
  6 readOnlyRootFilesystem *bool?
  7 allowPrivilegeEscalation *bool?
  8 runAsGroup *int64?
  9 procMount *string?
  10 windowsOptions *WindowsSecurityContextOptions?
  11 seccompProfile *SeccompProfile?
  12 appArmorProfile *AppArmorProfile?

SerializedReference kind
  1 reference ObjectReference

Service kind
  1 metadata meta.v1.ObjectMeta
  2 spec ServiceSpec
  3 status ServiceStatus

ServiceAccount kind
  1 metadata meta.v1.ObjectMeta
  2 secrets []ObjectReference?
  3 imagePullSecrets []LocalObjectReference?
  4 automountServiceAccountToken *bool?

ServiceAccountList kind
  1 metadata meta.v1.ListMeta
  2 items []ServiceAccount

ServiceAccountTokenProjection
  1 audience string?
  2 expirationSeconds *int64?
  3 path string
  4 user *int64?

ServiceList kind
  1 metadata meta.v1.ListMeta
  2 items []Service

ServicePort
  1 name string?
  2 protocol string?
  3 port int32
  4 targetPort intstr
  5 nodePort int32?
  6 appProtocol *string?

ServiceProxyOptions kind
  1 path string?

ServiceSpec
  1 ports []ServicePort?
  2 selector {}string?
  3 clusterIP string?
  4 type string?
  5 externalIPs []string?
  7 sessionAffinity string?
  8 loadBalancerIP string?
  9 loadBalancerSourceRanges []string?
  10 externalName string?
  11 externalTrafficPolicy string?
  12 healthCheckNodePort int32?
  13 publishNotReadyAddresses bool?
  14 sessionAffinityConfig *SessionAffinityConfig?
  17 ipFamilyPolicy *string?
  18 clusterIPs []string?
  19 ipFamilies []string?
  20 allocateLoadBalancerNodePorts *bool?
  21 loadBalancerClass *string?
  22 internalTrafficPolicy *string?
  23 trafficDistribution *string?

ServiceStatus
  1 loadBalancer LoadBalancerStatus
  2 conditions []meta.v1.Condition?

SessionAffinityConfig
  1 clientIP *ClientIPConfig?

SleepAction
  1 seconds int64

StorageOSPersistentVolumeSource
  1 volumeName string?
  2 volumeNamespace string?
  3 fsType string?
  4 readOnly bool?
  5 secretRef *ObjectReference?

StorageOSVolumeSource
  1 volumeName string?
  2 volumeNamespace string?
  3 fsType string?
  4 readOnly bool?
  5 secretRef *LocalObjectReference?

Sysctl
  1 name string
  2 value string

TCPSocketAction
  1 port intstr
  2 host string?

Taint
  1 key string
  2 value string?
  3 effect string
  4 timeAdded *time?

Toleration
  1 key string?
  2 operator string?
  3 value string?
  4 effect string?
  5 tolerationSeconds *int64?

TopologySelectorLabelRequirement
  1 key string
  2 values []string

TopologySelectorTerm
  1 matchLabelExpressions []TopologySelectorLabelRequirement?

TopologySpreadConstraint
  1 maxSkew int32
  2 topologyKey string
  3 whenUnsatisfiable string
  4 labelSelector *meta.v1.LabelSelector?
  5 minDomains *int32?
  6 nodeAffinityPolicy *string?
  7 nodeTaintsPolicy *string?
  8 matchLabelKeys []string?

TypedLocalObjectReference
  1 apiGroup *string
  2 kind string
  3 name string

TypedObjectReference
  1 apiGroup *string
  2 kind string
  3 name string
  4 namespace *string?

Volume
  1 name string
  2 - VolumeSource

VolumeDevice
  1 name string
  2 devicePath string

VolumeHealthCondition
  1 status string
  2 reason string
  3 message string?

VolumeHealthStatus
  1 healthConditions []VolumeHealthCondition?
  2 lastTransitionTime time

VolumeMount
  1 name string
  2 readOnly bool?
  3 mountPath string
  4 subPath string?
  5 mountPropagation *string?
  6 subPathExpr string?
  7 recursiveReadOnly *string?
  8 bindMountOptions []string?

VolumeMountStatus
  1 name string
  2 mountPath string
  3 readOnly bool?
  4 recursiveReadOnly *string?
  5 volumeStatus *VolumeStatus?

VolumeNodeAffinity
  1 required *NodeSelector?

VolumeProjection
  1 secret *SecretProjection?
  2 downwardAPI *DownwardAPIProjection?
  3 configMap *ConfigMapProjection?
  4 serviceAccountToken *ServiceAccountTokenProjection?
  5 clusterTrustBundle *ClusterTrustBundleProjection?
  6 podCertificate *PodCertificateProjection?

VolumeResourceRequirements
  1 limits {}quantity?
  2 requests {}quantity?

VolumeSource
  1 hostPath *HostPathVolumeSource?
  2 emptyDir *EmptyDirVolumeSource?
  3 gcePersistentDisk *GCEPersistentDiskVolumeSource?
  4 awsElasticBlockStore *AWSElasticBlockStoreVolumeSource?
  5 gitRepo *GitRepoVolumeSource?
  6 secret *SecretVolumeSource?
  7 nfs *NFSVolumeSource?
  8 iscsi *ISCSIVolumeSource?
  9 glusterfs *GlusterfsVolumeSource?
  10 persistentVolumeClaim *PersistentVolumeClaimVolumeSource?
  11 rbd *RBDVolumeSource?
  12 flexVolume *FlexVolumeSource?
  13 cinder *CinderVolumeSource?
  14 cephfs *CephFSVolumeSource?
  15 flocker *FlockerVolumeSource?
  16 downwardAPI *DownwardAPIVolumeSource?
  17 fc *FCVolumeSource?
  18 azureFile *AzureFileVolumeSource?
  19 configMap *ConfigMapVolumeSource?
  20 vsphereVolume *VsphereVirtualDiskVolumeSource?
  21 quobyte *QuobyteVolumeSource?
  22 azureDisk *AzureDiskVolumeSource?
  23 photonPersistentDisk *PhotonPersistentDiskVolumeSource?
  24 portworxVolume *PortworxVolumeSource?
  25 scaleIO *ScaleIOVolumeSource?
  26 projected *ProjectedVolumeSource?
  27 storageos *StorageOSVolumeSource?
  28 csi *CSIVolumeSource?
  29 ephemeral *EphemeralVolumeSource?
  30 image *ImageVolumeSource?

VolumeStatus
  1 image *ImageVolumeStatus?

VsphereVirtualDiskVolumeSource
  1 volumePath string
  2 fsType string?
  3 storagePolicyName string?
  4 storagePolicyID string?

WeightedPodAffinityTerm
  1 weight int32
  2 podAffinityTerm PodAffinityTerm

WindowsSecurityContextOptions
  1 gmsaCredentialSpecName *string?
  2 gmsaCredentialSpec *string?
  3 runAsUserName *string?
  4 hostProcess *bool?
"""
