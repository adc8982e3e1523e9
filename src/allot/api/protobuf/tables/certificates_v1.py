"""Messages of certificates.v1; written by scripts/protobuf_tables.py."""

TABLE = """
CertificateSigningRequest kind
  1 metadata meta.v1.ObjectMeta
  2 spec CertificateSigningRequestSpec
  3 status CertificateSigningRequestStatus

CertificateSigningRequestCondition
  1 type string
  2 reason string?
  3 message string?
  4 lastUpdateTime time
  5 lastTransitionTime time
  6 status string

CertificateSigningRequestList kind
  1 metadata meta.v1.ListMeta
  2 items []CertificateSigningRequest

CertificateSigningRequestSpec
  1 request bytes
  2 username string?
  3 uid string?
  4 groups []string?
  5 usages []string?
  6 extra {}strings?
  7 signerName string
  8 expirationSeconds *int32?

CertificateSigningRequestStatus
  1 conditions []CertificateSigningRequestCondition?
  2 certificate bytes?

ClusterTrustBundle kind
  1 metadata meta.v1.ObjectMeta
  2 spec ClusterTrustBundleSpec

ClusterTrustBundleList kind
  1 metadata meta.v1.ListMeta
  2 items []ClusterTrustBundle

ClusterTrustBundleSpec
  1 signerName string?
  2 trustBundle string

PodCertificateRequest kind
  1 metadata meta.v1.ObjectMeta
  2 spec PodCertificateRequestSpec
  3 status PodCertificateRequestStatus

PodCertificateRequestList kind
  1 metadata meta.v1.ListMeta
  2 items []PodCertificateRequest

PodCertificateRequestSpec
  1 signerName string
  2 podName string
  3 podUID string
  4 serviceAccountName string
  5 serviceAccountUID string
  6 nodeName string
  7 nodeUID string
  8 maxExpirationSeconds *int32?
  11 unverifiedUserAnnotations {}string?
  12 stubPKCS10Request bytes

PodCertificateRequestStatus
  1 conditions []meta.v1.Condition?
  2 certificateChain string?
  4 notBefore *time?
  5 beginRefreshAt *time?
  6 notAfter *time?
"""
