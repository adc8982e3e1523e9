"""The API server: HTTP in `http`, objects in `registry`, per-kind rules in `kinds`, `admission`, `auth`."""
