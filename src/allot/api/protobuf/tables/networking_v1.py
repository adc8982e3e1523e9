"""Messages of networking.v1; written by scripts/protobuf_tables.py."""

TABLE = """
HTTPIngressPath
  1 path string?
  2 backend IngressBackend
  3 pathType *string

HTTPIngressRuleValue
  1 paths []HTTPIngressPath

IPAddress kind
  1 metadata meta.v1.ObjectMeta
  2 spec IPAddressSpec

IPAddressList kind
  1 metadata meta.v1.ListMeta
  2 items []IPAddress

IPAddressSpec
  1 parentRef *ParentReference?

IPBlock
  1 cidr string
  2 except []string?

Ingress kind
  1 metadata meta.v1.ObjectMeta
  2 spec IngressSpec
  3 status IngressStatus

IngressBackend
  3 resource *core.v1.TypedLocalObjectReference?
  4 service *IngressServiceBackend?

IngressClass kind
  1 metadata meta.v1.ObjectMeta
  2 spec IngressClassSpec

IngressClassList kind
  1 metadata meta.v1.ListMeta
  2 items []IngressClass

IngressClassParametersReference
  1 apiGroup *string?
  2 kind string
  3 name string
  4 scope *string
  5 namespace *string?

IngressClassSpec
  1 controller string?
  2 parameters *IngressClassParametersReference?

IngressList kind
  1 metadata meta.v1.ListMeta
  2 items []Ingress

IngressLoadBalancerIngress
  1 ip string?
  2 hostname string?
  4 ports []IngressPortStatus?

IngressLoadBalancerStatus
  1 ingress []IngressLoadBalancerIngress?

IngressPortStatus
  1 port int32
  2 protocol string
  3 error *string?

IngressRule
  1 host string?
  2 - IngressRuleValue

IngressRuleValue
  1 http *HTTPIngressRuleValue?

IngressServiceBackend
  1 name string
  2 port ServiceBackendPort

IngressSpec
  1 defaultBackend *IngressBackend?
  2 tls []IngressTLS?
  3 rules []IngressRule?
  4 ingressClassName *string?

IngressStatus
  1 loadBalancer IngressLoadBalancerStatus

IngressTLS
  1 hosts []string?
  2 secretName string?

NetworkPolicy kind
  1 metadata meta.v1.ObjectMeta
  2 spec NetworkPolicySpec

NetworkPolicyEgressRule
  1 ports []NetworkPolicyPort?
  2 to []NetworkPolicyPeer?

NetworkPolicyIngressRule
  1 ports []NetworkPolicyPort?
  2 from []NetworkPolicyPeer?

NetworkPolicyList kind
  1 metadata meta.v1.ListMeta
  2 items []NetworkPolicy

NetworkPolicyPeer
  1 podSelector *meta.v1.LabelSelector?
  2 namespaceSelector *meta.v1.LabelSelector?
  3 ipBlock *IPBlock?

NetworkPolicyPort
  1 protocol *string?
  2 port *intstr?
  3 endPort *int32?

NetworkPolicySpec
  1 podSelector meta.v1.LabelSelector
  2 ingress []NetworkPolicyIngressRule?
  3 egress []NetworkPolicyEgressRule?
  4 policyTypes []string?

ParentReference
  1 group string?
  2 resource string?
  3 namespace string?
  4 name string?

ServiceBackendPort
  1 name string?
  2 number int32?

ServiceCIDR kind
  1 metadata meta.v1.ObjectMeta
  2 spec ServiceCIDRSpec
  3 status ServiceCIDRStatus

ServiceCIDRList kind
  1 metadata meta.v1.ListMeta
  2 items []ServiceCIDR

ServiceCIDRSpec
  1 cidrs []string?

ServiceCIDRStatus
  1 conditions []meta.v1.Condition?
"""
