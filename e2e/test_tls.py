"""TLS of CQL clients: stores, client certificates, protocols, ports, reloads, and clients that stall or break off."""

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.policies import RoundRobinPolicy

from oracle.opened import start, stop
from patience import PATIENCE_SECONDS, until
from server import HOST, Server, free_port
from stores import PASSWORD, Authority, self_signed

OPTIONS = bytes([4, 0, 0, 0, 5, 0, 0, 0, 0])
EC = ("-keyalg", "EC", "-groupname", "secp256r1")


class Material:
    """One set of keys for all tests."""

    def __init__(self, folder):
        self.authority = Authority(folder)
        self.jks = self.authority.store("node")
        self.pkcs12 = self.authority.store("node", "PKCS12", key=EC)
        self.pem = self.authority.pem_of("server", encrypted=True)
        self.trust_jks = self.authority.truststore()
        self.trust_pkcs12 = self.authority.truststore("PKCS12")
        other = Authority(folder / "elsewhere", "other")
        self.other_ca = other.pem
        self.clients = {
            "trusted": self.authority.pem_of("client"),
            "expired": self.authority.pem_of("expired", days=-1),
            "other authority": other.pem_of("stranger"),
            "self-signed": self_signed(folder, "alone"),
            "elsewhere": self.authority.pem_of("elsewhere", names="subjectAltName=DNS:localhost,IP:127.0.0.2"),
            "none": None,
        }

    @property
    def ca(self):
        return self.authority.pem


@pytest.fixture(scope="session")
def material(tmp_path_factory):
    return Material(tmp_path_factory.mktemp("stores"))


def options(**members):
    """`client_encryption_options`, on one line."""
    return "client_encryption_options: {" + ", ".join(f"{name}: {value}" for name, value in members.items()) + "}"


def of_stores(material, **members):
    return options(
        **{
            "enabled": "true",
            "keystore": material.jks,
            "keystore_password": PASSWORD,
            "truststore": material.trust_jks,
            "truststore_password": PASSWORD,
        }
        | members
    )


class Encrypted(Server):
    """A server that no client in plain text can ask whether it is there."""

    def _answers(self):
        return "ready after" in self.said()


@contextlib.contextmanager
def serving(request, folder, *settings):
    config = folder / "cassandra.yaml"
    config.write_text("\n".join(settings) + "\n", encoding="utf-8")
    server = Encrypted(request.config.getoption("--halcyon"), folder, "--config", config, "--log-level", "debug")
    try:
        yield server.start()
    finally:
        server.close()


def context(ca=None, client=None, most=None):
    """A client's; without `ca` it verifies nothing."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    else:
        made.load_verify_locations(ca)
    if client is not None:
        made.load_cert_chain(client)
    if most is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            made.minimum_version = made.maximum_version = most
        made.set_ciphers("ALL:@SECLEVEL=0")
    return made


@contextlib.contextmanager
def connected(port, ssl_context, name="localhost"):
    with socket.create_connection((HOST, port), timeout=PATIENCE_SECONDS) as plain:
        with ssl_context.wrap_socket(plain, server_hostname=name) as encrypted:
            yield encrypted


def is_served(port, ssl_context, name="localhost"):
    """Whether SUPPORTED answers OPTIONS. In TLS 1.3 a client learns of its refusal by the first read."""
    try:
        with connected(port, ssl_context, name) as client:
            client.sendall(OPTIONS)
            return client.recv(9)[4:5] == b"\x06"
    except (ssl.SSLError, ConnectionError):
        return False


def is_served_in_plain(port):
    with socket.create_connection((HOST, port), timeout=PATIENCE_SECONDS) as client:
        client.sendall(OPTIONS)
        try:
            return client.recv(9)[4:5] == b"\x06"
        except ConnectionError:
            return False


def nodetool(request, port, *words):
    command = [request.config.getoption("--halcyon"), "nodetool", "-p", str(port), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def indented(text):
    return "".join(f"\n        {line}" for line in text.splitlines())


def stores_of(kind, material):
    if kind == "JKS":
        return [of_stores(material)]
    if kind == "PKCS12":
        return [of_stores(material, store_type=kind, keystore=material.pkcs12, truststore=material.trust_pkcs12)]
    factory = "{class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}"
    if kind == "PEM":
        return [of_stores(material, ssl_context_factory=factory, keystore=material.pem, truststore=material.ca, truststore_password="null")]
    return [
        "client_encryption_options:",
        "  enabled: true",
        "  ssl_context_factory:",
        "    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory",
        "    parameters:",
        f"      private_key: |{indented(material.pem.read_text())}",
        f"      private_key_password: {PASSWORD}",
        f"      trusted_certificates: |{indented(material.ca.read_text())}",
    ]


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM", "PEM inline"])
def test_each_kind_of_store_serves_drivers(request, tmp_path, material, kind):
    """Proves that a node with each kind of store serves a driver that verifies chain and host, nodetool and cqlsh, that
    system_views.clients shows protocol and cipher suite, and that a large value comes over and back."""
    with serving(request, tmp_path, *stores_of(kind, material)) as server:
        session = server.connect(ssl_context=context(material.ca), ssl_options={"server_hostname": "localhost"})
        (client, *_) = session.execute("SELECT ssl_enabled, ssl_protocol, ssl_cipher_suite FROM system_views.clients")
        assert client[:2] == (True, "TLSv1.3") and client[2].startswith("TLS_AES_")
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v blob)")
        large = os.urandom(3 << 20)
        session.execute(session.prepare("INSERT INTO ks.t (k, v) VALUES (1, ?)"), [large])
        assert session.execute("SELECT v FROM ks.t").one().v == large
        done = nodetool(request, server.port, "--ssl", "-ts", material.ca, "-h", "localhost", "version")
        assert (done.returncode, done.stdout) == (0, "ReleaseVersion: 5.0.9\n"), done
        done = nodetool(request, server.port, "--ssl", "-ts", material.ca, "-h", "localhost", "clientstats", "--all")
        assert re.search(r"\n\nTotal connected clients: \d+\n\nUser      Connections\nanonymous \d+ +\n$", done.stdout), done
        assert done.stdout.splitlines()[1].split()[1:4] == ["true", client[2], "TLSv1.3"], done
        environment = os.environ | {"SSL_CERTFILE": str(material.ca), "SSL_VALIDATE": "true"}
        cqlsh = [Path(sys.executable).with_name("cqlsh"), "--ssl", "-e", "SELECT k FROM ks.t", "localhost", str(server.port)]
        done = subprocess.run(cqlsh, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment)
        assert done.returncode == 0 and "(1 rows)" in done.stdout, done


def let_in(port, material):
    """The clients that are served."""
    return [name for name, client in material.clients.items() if is_served(port, context(material.ca, client))]


AUTH = [
    ("false", list),
    ("optional", lambda clients: ["trusted", "elsewhere", "none"]),
    ("true", lambda clients: ["trusted", "elsewhere"]),
]


@pytest.mark.parametrize(("auth", "expected"), AUTH, ids=[auth for auth, _ in AUTH])
def test_clients_are_let_in_as_required(request, tmp_path, material, auth, expected):
    """Proves which clients each require_client_auth lets in: with a trusted certificate, an expired one, one of another authority, a
    self-signed one, and without one; and that nodetool shows its certificate."""
    with serving(request, tmp_path, of_stores(material, require_client_auth=auth)) as server:
        assert let_in(server.port, material) == expected(material.clients)
        words = ("--ssl", "-h", "localhost", "-ts", material.ca)
        assert nodetool(request, server.port, *words, "version").returncode == (1 if auth == "true" else 0)
        shown = nodetool(request, server.port, *words, "-ks", material.clients["trusted"], "version")
        assert shown.returncode == 0, shown
        # A node that requires none does not ask.
        assert ("presents the certificate of CN=client" in server.said()) == (auth != "false")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "members",
    [{"require_client_auth": "true"}, {"require_client_auth": "true", "require_endpoint_verification": "true"}, {"enabled": "false"}],
    ids=["required", "endpoints", "by keystore"],
)
def test_cassandra_lets_the_same_clients_in(request, tmp_path, material, cassandra_options, members):
    """Proves that Cassandra with the same stores lets in the same clients, with TLS and without, and with the same protocols."""
    settings = of_stores(material, **members)
    with serving(request, tmp_path, settings) as server:
        folder = tmp_path / "cassandra"
        facts = start(cassandra_options, folder, "oa", settings)
        try:
            port = facts["native_port"]
            assert let_in(port, material) == let_in(server.port, material)
            assert is_served_in_plain(port) == is_served_in_plain(server.port)
            for most in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                asks = context(material.ca, material.clients["trusted"], most)
                assert is_served(port, asks) == is_served(server.port, asks), most
        finally:
            stop(cassandra_options, folder)


def test_servers_are_verified_by_our_clients(request, tmp_path, material):
    """Proves that nodetool refuses a node of another authority and one that has another name, and that it says why."""
    with serving(request, tmp_path, of_stores(material)) as server:
        other = nodetool(request, server.port, "--ssl", "-h", "localhost", "-ts", material.other_ca, "version")
        assert other.returncode == 1 and "UnknownIssuer" in other.stderr, other
        # An address of this host that the certificate does not have.
        named = ("--ssl", "-h", "127.0.0.1", "-ts", material.trust_jks, "-tspw", PASSWORD)
        assert nodetool(request, server.port, *named, "version").returncode == 0
        assert not is_served(server.port, context(material.ca), "elsewhere")
        without = nodetool(request, server.port, "--ssl", "version")
        assert "--truststore" in without.stdout + without.stderr, without


def test_protocols_are_those_that_are_accepted(request, tmp_path, material):
    """Proves that a node of TLS 1.2 with one suite agrees on this only, and that older protocols find no server."""
    suite = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    with serving(request, tmp_path, of_stores(material, accepted_protocols="[TLSv1.2]", cipher_suites=f"[{suite}]")) as server:
        with connected(server.port, context(material.ca)) as client:
            assert client.cipher()[:2] == ("ECDHE-RSA-AES256-GCM-SHA384", "TLSv1.2")
        for most in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_3):
            assert not is_served(server.port, context(material.ca, most=most))
        assert f"enabled cipher suites: {suite}" in server.said()


def test_an_optional_port_takes_both(request, tmp_path, material):
    """Proves that with optional: true one port serves TLS and plain text, also a client whose first bytes come one by one; and that it
    still verifies a certificate that a client shows."""
    settings = of_stores(material, enabled="false", optional="true", require_client_auth="optional")
    with serving(request, tmp_path, settings) as server:
        assert is_served_in_plain(server.port) and let_in(server.port, material) == ["trusted", "elsewhere", "none"]
        for encrypted in (False, True):
            with socket.create_connection((HOST, server.port), timeout=PATIENCE_SECONDS) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if encrypted:
                    _in_pieces(client, material)
                else:
                    for byte in OPTIONS:
                        client.sendall(bytes([byte]))
                    assert client.recv(9)[4:5] == b"\x06"
        session = server.connect()
        rows = list(session.execute("SELECT ssl_enabled, ssl_protocol FROM system_views.clients"))
        assert (False, None) in [tuple(row) for row in rows]


def _cluster(port, ssl_context, user, password):
    return Cluster(
        [HOST], port=port, protocol_version=4, ssl_context=ssl_context, auth_provider=PlainTextAuthProvider(user, password), connect_timeout=PATIENCE_SECONDS,
        load_balancing_policy=RoundRobinPolicy(),
    )  # fmt: skip


def _logged_in(port, ssl_context):
    """The role that a client gets, or why it gets none."""
    cluster = _cluster(port, ssl_context, "unknown", "none")
    try:
        session = cluster.connect()
        return {row.username for row in session.execute("SELECT username FROM system_views.clients")} - {None}
    except NoHostAvailable as refused:
        return str(refused)
    finally:
        cluster.shutdown()


@pytest.mark.parametrize("validator", ["SpiffeCertificateValidator", "CommonNameCertificateValidator"])
def test_a_certificate_is_a_login(request, tmp_path, material, validator):
    """Proves that a certificate's identity stands for its role, that others are refused with Cassandra's texts, and that the fallback is a password."""
    authenticator = f"{{class_name: MutualTlsWithPasswordFallbackAuthenticator, parameters: {{validator_class_name: {validator}}}}}"
    settings = (
        of_stores(material, require_client_auth="optional"), f"authenticator: {authenticator}", "authorizer: CassandraAuthorizer",
        "superuser_setup_delay: 0ms", "auth_bcrypt_gensalt_log2_rounds: 4",
    )  # fmt: skip
    uri, name = "spiffe://example.com/service", "service"
    known = material.authority.pem_of(name, names=f"subjectAltName=DNS:localhost,URI:{uri}")
    unknown = material.authority.pem_of("stranger", names="subjectAltName=URI:spiffe://example.com/stranger")
    identity, other = {"S": (uri, "spiffe://example.com/stranger"), "C": (name, "stranger")}[validator[0]]
    with serving(request, tmp_path, *settings) as server:
        root = _cluster(server.port, context(material.ca), "cassandra", "cassandra")
        until(lambda: "Created default superuser" in server.said(), "no superuser is made")
        session = root.connect()
        session.execute("CREATE ROLE service WITH LOGIN = true")
        session.execute("GRANT SELECT ON KEYSPACE system_views TO service")
        session.execute(f"ADD IDENTITY '{identity}' TO ROLE 'service'")
        assert "service" in _logged_in(server.port, context(material.ca, known))
        refused = _logged_in(server.port, context(material.ca, unknown))
        assert "Certificate identity" in refused and other in refused and "not authorized" in refused
        if validator[0] == "S":
            assert "Unable to extract Spiffe from the certificate" in _logged_in(server.port, context(material.ca, material.clients["trusted"]))
        assert "and/or password are incorrect" in _logged_in(server.port, context(material.ca))
        session.execute("ALTER ROLE service WITH LOGIN = false")
        assert "service is not permitted to log in" in _logged_in(server.port, context(material.ca, known))
        session.execute(f"DROP IDENTITY '{identity}'")
        assert "not authorized" in _logged_in(server.port, context(material.ca, known))
        root.shutdown()


def _in_pieces(client, material):
    """A session of TLS whose records come in pieces of a few bytes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context(material.ca).wrap_bio(incoming, outgoing, server_hostname="localhost")

    def step(do):
        while True:
            try:
                return do()
            except ssl.SSLWantReadError:
                send()
                incoming.write(client.recv(3))
            finally:
                send()

    def send():
        rest = outgoing.read()
        while rest:
            client.sendall(rest[:7])
            rest = rest[7:]

    step(session.do_handshake)
    step(lambda: session.write(OPTIONS))
    assert step(lambda: session.read(9))[4:5] == b"\x06"


def test_a_keystore_makes_a_disabled_port_optional(request, tmp_path, material):
    """Proves Cassandra's default of `optional`: with a keystore that exists, a node that is not enabled takes both."""
    with serving(request, tmp_path, of_stores(material, enabled="false")) as server:
        assert is_served_in_plain(server.port) and is_served(server.port, context(material.ca))


def test_encryption_can_have_a_port_of_its_own(request, tmp_path, material):
    """Proves that native_transport_port_ssl is encrypted and native_transport_port is not, with 5.0's warning."""
    port = free_port()
    with serving(request, tmp_path, f"native_transport_port_ssl: {port}", of_stores(material)) as server:
        assert is_served_in_plain(server.port) and is_served(port, context(material.ca))
        assert not is_served(server.port, context(material.ca)) and not is_served_in_plain(port)
        assert "Usage of dual ports (native_transport_port together with native_transport_port_ssl) is deprecated" in server.said()


def test_certificates_are_reloaded(request, tmp_path, material):
    """Proves that reloadssl gives new connections the new certificate, that open ones stay, and that unusable files change
    nothing and are named."""
    store = tmp_path / "keystore"
    shutil.copy(material.jks, store)
    with serving(request, tmp_path, of_stores(material, keystore=store)) as server:

        def shown(name="localhost"):
            with connected(server.port, context(material.ca), name) as client:
                return client.getpeercert()["subject"][0][0][1]

        def reload():
            return nodetool(request, server.port, "--ssl", "-h", "localhost", "-ts", material.ca, "reloadssl")

        with connected(server.port, context(material.ca)) as before:
            assert shown() == "node"
            shutil.copy(material.authority.store("replacement"), store)
            assert shown() == "node"
            assert reload().returncode == 0 and shown() == "replacement"
            assert "SSL certificates have been updated for client_encryption_options. Resetting the ssl contexts" in server.said()
            store.write_bytes(b"nonsense")
            broken = reload()
            assert broken.returncode == 2 and str(store) in broken.stderr, broken
            assert "Failed to reload SSL certificates. Please check the SSL certificates" in broken.stderr
            assert "Failed to hot reload the SSL Certificates! Please check the certificate files" in server.said()
            assert shown() == "replacement"
            before.sendall(OPTIONS)
            assert before.recv(9)[4:5] == b"\x06"


@pytest.mark.timeout(300)
def test_stalled_handshakes_hold_nobody_up(request, tmp_path, material):
    """Proves that clients that stop in the middle of a handshake, or never begin one, are disconnected, and that others are served
    meanwhile."""
    with serving(request, tmp_path, of_stores(material)) as server:
        stalled = []
        for sent in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", b"\x16\x03\x01\x40\x00" + bytes(1000)) * 10:
            client = socket.create_connection((HOST, server.port), timeout=PATIENCE_SECONDS)
            client.sendall(sent)
            stalled.append(client)
        try:
            for _ in range(20):
                assert is_served(server.port, context(material.ca))
            for client in stalled:
                with contextlib.suppress(ConnectionError):
                    while client.recv(100):
                        pass
        finally:
            for client in stalled:
                client.close()
        assert "handshake timed out after 10000 ms" in server.said()
        until(lambda: _connections(server, material) == 1, "connections are left")


def _connections(server, material):
    with connected(server.port, context(material.ca)) as client:
        client.sendall(bytes([4, 0, 0, 0, 1, 0, 0, 0, 22]) + b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0")
        _message(client)
        statement = b"SELECT port FROM system_views.clients"
        body = struct.pack(">I", len(statement)) + statement + b"\x00\x01\x00"
        client.sendall(bytes([4, 0, 0, 0, 7]) + struct.pack(">I", len(body)) + body)
        answer = _message(client)
        # The count of rows stands behind the one column's metadata.
        return answer.count(b"\x00\x00\x00\x04\x00\x00")


def _exactly(client, count):
    got = b""
    while len(got) < count:
        part = client.recv(count - len(got))
        assert part, "the server has closed the connection"
        got += part
    return got


def _message(client):
    header = _exactly(client, 9)
    return _exactly(client, struct.unpack(">I", header[5:])[0])


def test_wrong_beginnings_are_refused(request, tmp_path, material):
    """Proves that a client in plain text is disconnected from an encrypted port with Netty's words in the log, so is one whose records
    are damaged, and that the server keeps serving."""
    with serving(request, tmp_path, of_stores(material)) as server:
        assert not is_served_in_plain(server.port)
        until(lambda: "not an SSL/TLS record: 0400000005" in server.said(), "the log does not say why")
        for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x17\x03\x03\x00\x01\x00", bytes(70_000)):
            with socket.create_connection((HOST, server.port), timeout=PATIENCE_SECONDS) as client:
                with contextlib.suppress(ConnectionError):
                    client.sendall(sent)
                    while client.recv(100):
                        pass
        assert is_served(server.port, context(material.ca))


def test_a_session_that_is_closed_is_answered(request, tmp_path, material):
    """Proves that requests that came before a close_notify are answered, and that the server closes its side with one too."""
    with serving(request, tmp_path, of_stores(material)) as server:
        with connected(server.port, context(material.ca)) as client:
            client.sendall(OPTIONS)
            _message(client)
            # Returns when the other side has said the same.
            client.unwrap().close()
        with connected(server.port, context(material.ca)) as client:
            client.sendall(OPTIONS * 3)
            for _ in range(3):
                _message(client)
        with socket.create_connection((HOST, server.port), timeout=PATIENCE_SECONDS):
            assert is_served(server.port, context(material.ca))


def refusals(material, folder):
    empty = folder / "empty"
    empty.write_bytes(b"")
    yield of_stores(material, protocol="TLSv1.1"), ["protocol", "TLSv1.1 is obsolete", "TLSv1.2"]
    yield of_stores(material, accepted_protocols="[TLSv1, TLSv1.1]"), ["accepted_protocols", "TLSv1, TLSv1.1"]
    yield of_stores(material, cipher_suites="[TLS_RSA_WITH_AES_128_CBC_SHA]"), ["TLS_RSA_WITH_AES_128_CBC_SHA", "CBC"]
    yield of_stores(material, cipher_suites="[TLS_NOPE]"), ["No ciphers left after filtering supported cipher suite", "TLS_NOPE"]
    yield of_stores(material, keystore_password="wrong"), [str(material.jks), "password was incorrect", "keystore_password"]
    yield of_stores(material, keystore_password="null"), ["'keystore_password' must be specified"]
    yield of_stores(material, keystore=folder / "missing"), ["keystore", str(folder / "missing"), "correct keystore"]
    yield of_stores(material, keystore=empty), [str(empty), "it is empty"]
    yield of_stores(material, keystore=material.trust_jks), [str(material.trust_jks), "no private key"]
    yield of_stores(material, require_client_auth="true", truststore=empty), ["truststore", str(empty)]
    yield of_stores(material, require_client_auth="true", optional="true"), ["optional", "require_client_auth"]
    yield of_stores(material, require_client_auth="maybe"), ["require_client_auth", "maybe", "true, false or optional"]
    yield of_stores(material, require_endpoint_verification="perhaps"), ["require_endpoint_verification", "perhaps"]
    yield of_stores(material, store_type="JCEKS"), ["store_type", "JCEKS", "PKCS12"]
    yield of_stores(material, algorithm="X"), ["algorithm", "SunX509"]
    yield of_stores(material, ssl_context_factory="org.example.Own"), ["ssl_context_factory", "PEMBasedSslContextFactory"]
    yield of_stores(material, keystores="x"), ["Please remove properties [client_encryption_options.keystores]"]
    yield "native_transport_port_ssl: 9142", ["Encryption must be enabled in client_encryption_options for native_transport_port_ssl"]


def test_settings_that_cannot_be_obeyed_are_refused(request, tmp_path, material):
    """Proves that each setting that cannot be obeyed ends the start with its name, the file and the cure, and shows no password."""
    config = tmp_path / "cassandra.yaml"
    for settings, parts in refusals(material, tmp_path):
        config.write_text(settings + "\n", encoding="utf-8")
        command = [request.config.getoption("--halcyon"), "serve", "--data-dir", tmp_path / "data", "--port", str(free_port()), "--config", config]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        said = done.stdout + done.stderr
        assert done.returncode != 0, settings
        assert all(part in said for part in parts), (settings, said)
        assert f"password: {PASSWORD}" not in said and "wrong" not in said.replace("configuration", ""), said


# What testssl.sh says of any private authority.
KNOWN = {"cert_chain_of_trust", "cert_revocation", "OCSP_stapling", "DNS_CAArecord"}


def test_testssl_finds_nothing(request, tmp_path, material):
    """Proves that testssl.sh finds neither an obsolete protocol or suite nor a known vulnerability."""
    if not request.config.getoption("--testssl"):
        pytest.skip("takes three minutes: pass --testssl")
    found = tmp_path / "found.json"
    with serving(request, tmp_path, of_stores(material)) as server:
        command = ["testssl", "--quiet", "--warnings", "off", "--color", "0", "--jsonfile", found, f"localhost:{server.port}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=1200)
        findings = json.loads(found.read_text(encoding="utf-8"))
        bad = [finding for finding in findings if finding["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL")]
        assert len(findings) > 100
        assert [finding for finding in bad if finding["id"].split(" ")[0] not in KNOWN] == []
        assert is_served(server.port, context(material.ca))


# What sslyze says of a private authority and of the material's days.
OF_CERTIFICATES = {"certificate_path_validation", "maximum_certificate_lifespan"}


@pytest.mark.xdist_group("sslyze")
@pytest.mark.timeout(300)
def test_sslyze_finds_nothing(request, tmp_path, material):
    """Proves that sslyze finds no vulnerability, and Mozilla's intermediate profile but for the authority, and that a client without a suite in common gets a handshake failure."""
    # Its dependencies are fixed to versions that differ from the other tests'.
    environment = tmp_path / "sslyze"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin/pip", "install", "-q", "sslyze==6.3.1"], check=True)
    with serving(request, tmp_path, of_stores(material)) as server:
        command = [environment / "bin/sslyze", "--mozilla_config", "intermediate", f"localhost:{server.port}"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stdout
        compliance = said.split("COMPLIANCE AGAINST TLS CONFIGURATION")[1]
        assert "did not run successfully" not in compliance, said
        assert set(re.findall(r"^ +\* (\w+):", compliance, re.M)) <= OF_CERTIFICATES, compliance
        assert said.count("OK - ") >= 8 and "VULNERABLE - " not in said, said
        without = context()
        without.maximum_version = ssl.TLSVersion.TLSv1_2
        without.set_ciphers("AES256-SHA:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError, match="(?i)handshake.failure"):
            with connected(server.port, without):
                pass
