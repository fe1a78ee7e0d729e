"""Settings that must be there before Ray is imported."""

import atexit
import os
import shutil
import tempfile

# Raylets stay on the loopback interface.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Ray's workers stand back behind everything else, which makes tests wait on a busy machine.
os.environ.update({"RAY_worker_niceness": "0"})
# The token of the tests is their own.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = "tests" * 8
# Chains, nodes and Ray's sockets in memory: programs wait for the disk at every block, and nothing here cuts the power.
if os.access("/dev/shm", os.W_OK):
    memory = tempfile.mkdtemp(prefix="assay-cluster-", dir="/dev/shm")
    atexit.register(shutil.rmtree, memory, ignore_errors=True)
    os.environ["TMPDIR"] = os.environ["RAY_TMPDIR"] = tempfile.tempdir = memory
