"""Keys and certificates for tests of TLS: stores of the JDK's keytool, and PEM of openssl."""

import subprocess

PASSWORD = "cassandra"
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """A certificate authority, its certificate as `pem`, and what it signs, in one folder."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.pem, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        folder.mkdir(exist_ok=True)
        _openssl("req", "-x509", *EC, "-days", "400", "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.pem)

    def _sign(self, request, names, days):
        extensions = self.folder / "extensions"
        extensions.write_text(names)
        authority = ("-CA", self.pem, "-CAkey", self._key, "-CAcreateserial")
        return _openssl("x509", "-req", "-in", request, *authority, "-days", days, "-extfile", extensions)

    def store(self, name, kind="JKS", *, key=("-keyalg", "RSA", "-keysize", "2048"), names=NAMES):
        """A keystore with a key that this authority has signed."""
        path = self.folder / f"{name}.{kind.lower()}"
        request, reply = self.folder / "request", self.folder / "reply"

        def keytool(*arguments):
            _keytool(*arguments, "-storetype", kind, "-keystore", path, "-storepass", PASSWORD)

        keytool("-genkeypair", "-alias", name, *key, "-dname", f"CN={name}", "-keypass", PASSWORD)
        keytool("-certreq", "-alias", name, "-file", request)
        reply.write_text(self._sign(request, names, 400))
        keytool("-importcert", "-alias", "ca", "-file", self.pem, "-noprompt")
        keytool("-importcert", "-alias", name, "-file", reply, "-noprompt")
        return path

    def truststore(self, kind="JKS"):
        path = self.folder / f"trust.{kind.lower()}"
        _keytool("-importcert", "-alias", "ca", "-file", self.pem, "-noprompt", "-storetype", kind, "-keystore", path, "-storepass", PASSWORD)
        return path

    def pem_of(self, name, encrypted=False, days=400, names=NAMES):
        """A file with a key in PKCS#8 and its chain. With `days` below zero the certificate has expired."""
        key, request, path = self.folder / f"{name}.key", self.folder / "request", self.folder / f"{name}.pem"
        _openssl("req", *EC, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        how = ("-v2", "aes-256-cbc", "-passout", f"pass:{PASSWORD}") if encrypted else ("-nocrypt",)
        path.write_text(_openssl("pkcs8", "-topk8", *how, "-in", key) + self._sign(request, names, days) + self.pem.read_text())
        return path


def self_signed(folder, name):
    """A file with a key and a certificate that no authority has signed."""
    key, certificate, path = folder / f"{name}.key", folder / f"{name}.crt", folder / f"{name}.pem"
    _openssl("req", "-x509", *EC, "-days", "400", "-subj", f"/CN={name}", "-addext", NAMES, "-keyout", key, "-out", certificate)
    path.write_text(key.read_text() + certificate.read_text())
    return path


def _run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _keytool(*arguments):
    return _run("keytool", *arguments)


def _openssl(*arguments):
    return _run("openssl", *arguments)
