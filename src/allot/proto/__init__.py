"""Messages of protocols that are not ours, as generated code. Each `.proto` here says how.

    etcd_pb2                  etcd's v3 API, for `allot.storage`
    plugin_registration_pb2   InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse
    dra_plugin_pb2            Node(Un)PrepareResourcesRequest and -Response, Claim, Device
    dra_health_pb2            NodeWatchResourcesRequest and -Response, DeviceHealth, HealthStatus
    pod_resources_pb2         List-, GetPodResourcesRequest and -Response, PodResources, DynamicResource
    services                  the full names of the kubelet's and drivers' gRPC services and methods; `call`, `stream`,
                              `serve` and handlers for grpc.aio

The last five are what kubelet and drivers share. They need the extra `drivers`; import them where sockets are used.
"""
