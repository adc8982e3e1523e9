"""The node side of a driver: what Kubernetes' kubeletplugin package is for drivers in Go.

driver     the class to implement: devices, prepare, unprepare
claims     what a claim has of the driver, and what was prepared
plugin     `KubeletPlugin`: publishes, registers, serves, until stopped
  ├─ preparation    prepare and unprepare claims: checks, checkpoint, CDI files
  │    ├─ checkpoint    prepared claims, which survive a restart
  │    └─ cdi_files     CDI specifications
  ├─ sockets        gRPC: registration, DRAPlugin, DRAResourceHealth (needs the extra `drivers`)
  ├─ health         the health of devices
  └─ metrics
device_status   `status.devices` of claims, by server-side apply
running         a program with options and signals around all of it
"""
