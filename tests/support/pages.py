"""The page as a browser sees it."""

from __future__ import annotations

import html
import re

from flask import Flask
from werkzeug.test import TestResponse

from dramatiq_echomq.web.addresses import to_address


class Pages:
    """A browser that keeps cookies and sends the forms of pages."""

    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()

    def get(self, path: str, status: int = 200, **options) -> str:
        answer = self.client.get(path, **options)
        assert answer.status_code == status, answer.text
        return answer.text

    def token(self, path: str) -> str:
        """The token in the first form of a page."""
        return re.search(r'name="token" value="([\w-]+)"', self.get(path))[1]

    def post(self, path: str, token_from: str, **fields) -> TestResponse:
        return self.client.post(path, data={"token": self.token(token_from), **fields})

    def act_on_queue(self, action: str, queue: str = "q", **fields) -> str:
        """Press a button of a queue, and return the text of the page that comes."""
        path = f"/queues/{to_address(queue)}"
        return self._after(self.post(path, path, action=action, **fields))

    def act_on_jobs(self, action: str, *job_ids: str, queue: str = "q", **fields) -> str:
        """Press a button for some jobs, and return the text of the page that comes."""
        path = f"/queues/{to_address(queue)}"
        ids = [to_address(job_id) for job_id in job_ids]
        return self._after(self.post(f"{path}/jobs", path, action=action, id=ids, **fields))

    def _after(self, answer: TestResponse) -> str:
        assert answer.status_code == 303, answer.text
        return text_of(self.get(answer.headers["Location"]))


def text_of(page: str) -> str:
    """What a page says, without its elements."""
    body = re.sub(r"(?s)^.*<main[^>]*>|</main>.*$", "", page)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def job_path(job_id: str, queue: str = "q") -> str:
    return f"/queues/{to_address(queue)}/jobs/{to_address(job_id)}"
