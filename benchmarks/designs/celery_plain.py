"""A Celery task for each run, with Celery's defaults: acknowledged before it runs, tried again after an error.

Cancel: `revoke(terminate=True)`. What failed six times is a FAILURE in the result backend.
"""

from __future__ import annotations

import os

from celery import Celery

from benchmarks.designs import task
from benchmarks.designs.steps import deploy
from flows.errors import ActivityError

app = Celery("plain", broker=os.environ[task.BROKER], backend=os.environ[task.BROKER])
app.conf.update(broker_connection_retry_on_startup=True)


@app.task(name="deploy", autoretry_for=(ActivityError,), max_retries=5, retry_backoff=1)
def deploy_service(run: str) -> None:
    deploy(task.cloud(), run)
