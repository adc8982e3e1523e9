"""Role-based access control.

    Role, ClusterRole, bindings ─▶ policy_index ─▶ authorizer   may this user do that?
                                        │
                                        ├────────▶ escalation   may this user grant that?
    bootstrap_roles.txt ─▶ bootstrap    └────────▶ access reviews, `kubectl auth can-i`

`rules` says what one rule allows. All of it but `policy_feed` is pure. `admission/escalation.py` and `registry/bootstrap_roles.py` use it.
"""
