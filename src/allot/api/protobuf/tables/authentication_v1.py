"""Messages of authentication.v1; written by scripts/protobuf_tables.py."""

TABLE = """
BoundObjectReference
  1 kind string?
  2 apiVersion string?
  3 name string?
  4 uid string?

SelfSubjectReview kind
  1 metadata meta.v1.ObjectMeta
  2 status SelfSubjectReviewStatus

SelfSubjectReviewStatus
  1 userInfo UserInfo

TokenRequest kind
  1 metadata meta.v1.ObjectMeta
  2 spec TokenRequestSpec
  3 status TokenRequestStatus

TokenRequestSpec
  1 audiences []string
  3 boundObjectRef *BoundObjectReference
  4 expirationSeconds *int64
  5 attestations {}strings?

TokenRequestStatus
  1 token string
  2 expirationTimestamp time

TokenReview kind
  1 metadata meta.v1.ObjectMeta
  2 spec TokenReviewSpec
  3 status TokenReviewStatus

TokenReviewSpec
  1 token string?
  2 audiences []string?

TokenReviewStatus
  1 authenticated bool?
  2 user UserInfo
  3 error string?
  4 audiences []string?

UserInfo
  1 username string?
  2 uid string?
  3 groups []string?
  4 extra {}strings?
"""
