"""
The page of a node in a real Chromium, whose visitors log in with a role: each panel shows what the virtual tables say, nothing comes from
another host, a role that may not see a table sees why, and all of it works with a keyboard, on a telephone and for a screen reader.
"""

import os
import threading
import urllib.error
import urllib.request
from importlib.resources import files

import pytest
from playwright.sync_api import sync_playwright

from native import Client, Refused
from patience import PATIENCE_SECONDS, TIMEOUTS, until
from server import HOST, Server, flush_statement, free_port

# They share a node and a browser.
pytestmark = pytest.mark.xdist_group("page")

ROOT = ("cassandra", "cassandra")
WATCHER = ("watcher", "word")
MARKUP = "<img src=x onerror=document.title=1>"
CONFIG = f"""
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
superuser_setup_delay: 0ms
slow_query_log_timeout: 5ms
compaction_throughput: 1MiB/s
{TIMEOUTS}"""


class Load:
    """Reads and writes until it is closed, so that there are latencies to be seen."""

    def __init__(self, port):
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port,))
        self._thread.start()

    def _run(self, port):
        client = Client(port, ROOT)
        number = 0
        while not self._ends.is_set():
            number += 1
            client.query(f"INSERT INTO p.t (p, v) VALUES ({number % 100}, 'new')")
            client.query(f"SELECT v FROM p.t WHERE p = {number % 100}")
            self._ends.wait(0.005)
        client.close()

    def close(self):
        self._ends.set()
        self._thread.join()


@pytest.fixture(scope="module")
def node(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    port = free_port()
    (folder / "cassandra.yaml").write_text(f"metrics_port: {port}\n{CONFIG}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", folder / "cassandra.yaml").start()
    root = got(lambda: _logged_in(server.port), "the superuser is not there")
    root.query("CREATE KEYSPACE p WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    root.query("CREATE TABLE p.t (p int PRIMARY KEY, v text)")
    # Compacted on request only, so that there is one compaction to be stopped.
    by_request = "{'class': 'SizeTieredCompactionStrategy', 'enabled': false}"
    root.query(f"CREATE TABLE p.large (p int PRIMARY KEY, v text) WITH compression = {{'enabled': false}} AND compaction = {by_request}")
    root.query("CREATE ROLE watcher WITH PASSWORD = 'word' AND LOGIN = true")
    root.query("GRANT SELECT ON halcyon_views.request_latency TO watcher")
    filler = os.urandom(32 << 10).hex()
    for part in range(2):
        for number in range(128):
            root.query(f"INSERT INTO p.large (p, v) VALUES ({number + part}, '{filler}')")
        root.query(flush_statement("p", "large"))
    # The first read may come before the end of the examination.
    until(lambda: _examined(root), "the doctor examines for ever", pause=0.5)
    load = Load(server.port)
    yield root, f"http://{HOST}:{port}"
    load.close()
    root.close()
    server.close()


def _examined(client):
    try:
        return client.query("SELECT * FROM halcyon_views.findings")
    except Refused:
        return None


def _logged_in(port):
    try:
        return Client(port, ROOT)
    except Exception:  # noqa: BLE001: the superuser is made after the start
        return None


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, node):
    """Opens the page as a role. Whatever it fetches from elsewhere, and whatever it complains about, fails the test."""
    opened, faults = [], []

    def routed(route):
        if not route.request.url.startswith(f"{node[1]}/"):
            faults.append(f"fetches {route.request.url}")
            return route.abort()
        return route.continue_()

    def visit(login=ROOT, **options):
        credentials = {"username": login[0], "password": login[1], "origin": node[1], "send": "always"}
        context = chromium.new_context(http_credentials=credentials, **options)
        opened.append(context)
        context.route("**", routed)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(node[1])
        page.locator("#state", has_text="live").wait_for()
        return page

    visit.faults = faults
    yield visit
    for context in opened:
        context.close()
    assert not faults, faults


def rows(client, text):
    """Rows as the page gets them."""
    return [row[0].decode() for row in client.query(text)[1]]


def got(find, what):
    """Waits until something is found."""
    found = []
    until(lambda: found.append(find()) or found[-1], what)
    return found[-1]


def legend(page, panel):
    return page.eval_on_selector_all(f"#panel-{panel} .legend li:not(.behind)", "items => items.map(item => item.textContent)")


def test_panels_show_what_virtual_tables_say(node, visit):
    root, _ = node
    page = visit()
    panels = [tuple(part.decode() for part in row) for row in root.query("SELECT name, section, title, question, kind, query FROM halcyon_views.panels")[1]]
    assert len(panels) > 15
    sections = page.eval_on_selector_all("#sections a", "links => links.map(link => link.textContent)")
    assert sections[:5] == ["Latency", "What a read meets", "Compaction", "Device", "Caches and memory"]
    assert {section for _, section, *_ in panels} == set(sections)
    for name, _, title, question, kind, query in panels:
        if kind == "backdrop":
            continue
        card = page.locator(f"#panel-{name}")
        assert card.locator("h2, h3").inner_text() == title and question in card.inner_text()
        assert not card.locator(".refused").is_visible(), card.inner_text()
        if kind == "lines":
            # Those that have values; the page shows the largest ones.
            script = "async rows => [...(await import('/figures.js')).lines(rows.map(JSON.parse))].filter(([, value]) => value !== null).map(([line]) => line)"
            names = tuple(f"{line} " for line in page.evaluate(script, rows(root, query)))
            shown = names and got(lambda: legend(page, name), f"{name} has no line")
            assert all(line.startswith(names) for line in shown), (shown, names)
        if kind == "rows" and name not in ("settings", "compactions"):
            until(lambda: card.locator("tbody tr").count() == min(len(rows(root, query)), 200), f"{name} has other rows")
    most = page.evaluate("async row => (await import('/figures.js')).written(JSON.parse(row).memory_max, 'bytes')", rows(root, "SELECT JSON memory_max FROM halcyon_views.node")[0])
    assert f"memory_max {most}" in legend(page, "memory")
    shown = page.locator("#panel-tables tbody tr", has_text="large").locator("td").all_inner_texts()
    of_table = page.evaluate(
        "async row => { const {written} = await import('/figures.js'); row = JSON.parse(row); return [written(row.sstables), written(row.disk_space, 'bytes')]; }",
        rows(root, "SELECT JSON sstables, disk_space FROM halcyon_views.table_statistics WHERE keyspace_name = 'p' AND table_name = 'large'")[0],
    )
    assert of_table == shown[6:8], shown


def test_latencies_are_live_and_of_the_buckets(node, visit):
    root, _ = node
    page = visit()
    for panel, operation in (("read_latency", "Read"), ("write_latency", "Write")):
        quantiles = got(lambda: len(legend(page, panel)) == 3 and "–" not in str(legend(page, panel)) and legend(page, panel), f"{panel} has no quantiles")
        assert [text.split()[0] for text in quantiles] == ["p50", "p99", "p99.9"]
        bounds = rows(root, f"SELECT JSON below_ns FROM halcyon_views.request_latency WHERE operation = '{operation}'")
        known = page.evaluate("async rows => { const {written} = await import('/figures.js'); return rows.map(row => written(JSON.parse(row).below_ns, 'ns')); }", bounds)
        assert all(text.split(" ", 1)[1] in known for text in quantiles), (quantiles, known)
    until(lambda: any(text.startswith("Read ") and "–" not in text for text in legend(page, "requests")), "no rate of reads")
    before = page.locator("#state").inner_text()
    until(lambda: page.locator("#state").inner_text() != before, "the page stands still")


def test_texts_of_clients_are_no_markup(node, visit):
    root, _ = node
    page = visit()

    def is_shown():
        root.query(f"SELECT * FROM p.large WHERE v = '{MARKUP}' ALLOW FILTERING")
        return MARKUP in page.locator("#panel-slow_requests").inner_text()

    until(is_shown, "the slow request is not shown", pause=0.5)
    assert page.locator("img").count() == 0 and page.title() == "Halcyon"


def test_a_compaction_is_stopped_with_the_keyboard(node, visit):
    root, _ = node
    page = visit()
    root.query("INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name, argument) VALUES ('p', 'large', '')")
    page.locator("#panel-compactions button.danger").wait_for()
    page.locator("#pause").focus()
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Stop":
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Stop the compaction of p.large"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "stop"
    page.keyboard.press("Enter")
    stopped = "SELECT JSON state FROM halcyon_views.major_compactions WHERE keyspace_name = 'p' AND table_name = 'large'"
    # Playwright continues requests only while it is called.
    until(lambda: page.wait_for_timeout(50) or "stopped" in rows(root, stopped)[0], "the compaction is not stopped")
    until(lambda: page.locator("#panel-compactions button.danger").count() == 0, "the page still shows the compaction")
    assert not page.locator("#panel-compactions .refused").is_visible()


def test_roles_see_what_they_may_select(node, visit):
    """Proves that a role without permission on a table sees why in its place, and no button; and that a password is needed."""
    root, address = node
    page = visit(WATCHER)
    assert page.locator("#role").inner_text() == "as watcher"
    until(lambda: len(legend(page, "read_latency")) == 3, "what is granted is not shown")
    refusal = "User watcher has no SELECT permission on <table system_views.caches> or any of its parents"
    until(lambda: refusal in page.locator("#panel-cache_size .refused").inner_text(), "the refusal is not shown")
    assert not page.evaluate("fetch('/stop?id=5b6f0a10-0000-11ee-8000-000000000001', {method: 'POST', headers: {'x-halcyon-page': '1'}}).then(answer => answer.ok)")
    # The browser complains about this refusal, and about no other.
    assert len(visit.faults) == 1 and "403" in visit.faults.pop()
    root.query("GRANT SELECT ON system_views.caches TO watcher")
    until(lambda: page.locator("#panel-cache_size .refused").is_hidden(), "the granted table is not shown")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{address}/events", timeout=60)


def test_axe_finds_nothing(visit):
    page = visit(color_scheme="light")
    until(lambda: legend(page, "memory"), "no chart yet")
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))

    def found(rules):
        # All rows of a list are made alike.
        context = "{exclude: ['tbody tr:nth-child(n+4)', 'details tr']}"
        violations = page.evaluate(f"axe.run({context}, {{resultTypes: ['violations'], {rules}}})")["violations"]
        return [(one["id"], one["impact"], [node["html"] for node in one["nodes"]][:3]) for one in violations]

    assert not found("")
    page.emulate_media(color_scheme="dark")
    assert not found("runOnly: ['color-contrast']")


def test_a_telephone_scrolls_down_only(visit):
    page = visit(viewport={"width": 360, "height": 740})
    until(lambda: legend(page, "memory"), "no chart yet")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
