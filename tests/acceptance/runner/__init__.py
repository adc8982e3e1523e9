"""A black-box runner: scenarios written as YAML, played against any cluster that speaks the Kubernetes API.

    scenarios    the file format: what a scenario brings along
    steps        the verbs a scenario is told in
    running      one scenario, from its namespaces to cleaning up
      placeholders   ${P}, ${NS} and what earlier steps saved
      resources      from `resourceclaims/c@ns` or a manifest to a URL
      expectations   what must hold of an answer, with `paths` into it
      watching       the watch step
      kubectl        the kubectl step
    rest         the HTTP client under all of it
    nodes        nodes, played by the runner where the cluster has no kubelets
    acceptance   opens all of this for a kubeconfig

Every scenario has names of its own, so any number may run at once on one cluster.
"""
