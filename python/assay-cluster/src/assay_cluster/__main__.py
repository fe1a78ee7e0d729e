"""`python -m assay_cluster`."""

import sys

from assay_cluster.cli import main

sys.exit(main())
