from __future__ import annotations

import shutil
import ssl
import subprocess
import threading

import dramatiq
import pytest
import redis
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import EchoMQBroker, StalledChecker, StalledCheckerMiddleware

from ..support.brokers import Recorder, booted, lines, working
from ..support.queue_data import put
from ..support.servers import Server, free_port, server_binary, wait_until
from ..support.terminator import Terminator

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make a certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The paths of a certificate for 127.0.0.1 and of its key."""
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def speaks_tls(binary: str) -> bool:
    """Whether a server was built with TLS: only such a server complains of a missing certificate."""
    command = [binary, "--port", "0", "--tls-port", str(free_port())]
    tried = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return "Failed to configure TLS" in tried.stdout


@pytest.fixture(params=["server", "terminator"])
def tls(request, certificate, monkeypatch):
    """The URL of a server behind TLS, and the server."""
    cert, key = certificate
    if request.param == "terminator":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        with Server() as server, Terminator(server.port, context) as terminator:
            yield f"rediss://127.0.0.1:{terminator.port}/0", server
        return
    capable = [binary for binary in (server_binary(), shutil.which("redis-server")) if binary and speaks_tls(binary)]
    if not capable:
        pytest.skip(f"{server_binary()} was built without TLS, and there is no redis-server in PATH")
    monkeypatch.setenv("ECHOMQ_TEST_SERVER", capable[0])
    port = free_port()
    options = {"port": port, "cert-file": cert, "key-file": key, "ca-cert-file": cert, "auth-clients": "no"}
    with Server(*(str(part) for name, value in options.items() for part in (f"--tls-{name}", value))) as server:
        yield f"rediss://127.0.0.1:{port}/0", server


def test_the_checker_works_over_tls(tls, certificate):
    url, server = tls
    with server.client() as plain:
        put(plain, active=["a"], jobs={"a": {}}, stalled={"a"})
    with redis.Redis.from_url(url, ssl_ca_certs=str(certificate[0])) as client:
        assert StalledChecker(client).check("q").recovered_ids == ("a",)


def test_the_middleware_works_over_tls_with_all_options_in_its_url(tls, certificate):
    url, server = tls
    with server.client() as plain:
        put(plain, active=["a"], jobs={"a": {}})
    broker, recorder = StubBroker(), Recorder()
    broker.add_middleware(
        StalledCheckerMiddleware(url=f"{url}?ssl_ca_certs={certificate[0]}", stalled_interval=100, queues=["q"])
    )
    broker.add_middleware(recorder)
    with booted(broker):
        wait_until(lambda: recorder.named("recovered") == [("q", ("a",))])


def test_a_broker_and_its_worker_work_over_tls(tls, certificate):
    url, server = tls
    broker = EchoMQBroker(url=f"{url}?ssl_ca_certs={certificate[0]}", middleware=[])
    may_end = threading.Event()
    actor = dramatiq.actor(lambda: may_end.wait(20), actor_name="work", queue_name="q", broker=broker)
    sent = [actor.send() for _ in "ab"]

    with server.client() as plain, working(broker):
        first = f"emq:q:{sent[0].options['echomq_job_id']}"
        wait_until(lambda: plain.exists(f"{first}:lock"))
        may_end.set()
        wait_until(lambda: broker.get_queue_message_counts("q").completed == 2)
    broker.close()


def test_a_certificate_that_nobody_vouches_for_is_an_outage_and_not_a_way_in(tls, caplog):
    url, _ = tls
    broker, recorder = StubBroker(), Recorder()
    broker.add_middleware(StalledCheckerMiddleware(url=url, stalled_interval=100))
    broker.add_middleware(recorder)
    with booted(broker, "q"):
        wait_until(lambda: lines(caplog, "ERROR"))
    (line,) = lines(caplog, "ERROR")
    assert "CERTIFICATE_VERIFY_FAILED" in line
    assert recorder.signals == []
