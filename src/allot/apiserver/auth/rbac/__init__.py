"""Role-based access control.

    Role, ClusterRole, bindings ─▶ policy_index ─▶ authorizer   may this user do that?
                                        │
                                        ├────────▶ escalation   may this user grant that?
    bootstrap_roles.txt ─▶ bootstrap    └────────▶ access reviews, `kubectl auth can-i`

`rules` decides what one rule allows. All modules but `policy_feed` are pure. `admission/escalation.py` and `registry/bootstrap_roles.py` use it.
"""
