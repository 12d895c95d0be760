"""The page of runs in a real browser: Debian's chromium, driven by selenium."""

import json
import shutil

import pytest

from gumbel_mpnn.report.page import write_page
from helpers import small_data
from quick_fit import quick

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install -e '.[dev]'")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="there is no chromium with its chromedriver on the path"),
]
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1300,900")
LONG = "long" * 150
HOSTILE = ["<script>window.hacked=1</script>", "__proto__", "constructor", "a\"b'c", "</script><b>bold</b>", "&amp;"]
HOSTILE += [LONG]
CLASSES = ["<img src=x onerror=window.hacked=2>", f'"quoted" class {LONG}', "__proto__"]
IN_SIGHT = "const box = arguments[0].getBoundingClientRect(); return box.width > 0 && box.height > 0"

CONTRAST = """
const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
const parse = (color) => ({ rgb: numbers(color).slice(0, 3), a: numbers(color)[3] ?? 1 });
const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const { rgb, a } = parse(getComputedStyle(each).backgroundColor);
    if (a === 1) return rgb;
  }
  return [255, 255, 255];
};
const weak = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let seen = 0;
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || element.closest("script") || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const [one, other] = [light(parse(element.closest("svg") ? style.fill : style.color).rgb), light(behind(element))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  seen += 1;
  if (ratio < 4.5) weak.push([walker.currentNode.textContent, ratio]);
}
return [seen, weak];
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page on two runs, whose data have names that would be markup."""
    folder, data = tmp_path_factory.mktemp("page"), small_data(nodes=60, splits=3)
    data.node_ids = [*HOSTILE, *(f"node {k}" for k in range(60 - len(HOSTILE)))]
    data.class_names = CLASSES
    more = {"model": {"hidden_channels": 8}, "train": {"lr": 0.05, "epochs": 12}}
    runs = [quick(data, model, runs=folder, settings=more) for model in ("gumbel-mpnn", "gcn")]
    write_page(runs, folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver, page):
    """The page, just opened in a wide window, once its graph is drawn."""
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(page.as_uri())
    drawn(driver)
    return driver


def drawn(browser):
    """The pixels of the graph when it is at rest."""
    browser.set_script_timeout(20)
    return browser.execute_async_script(
        """
        const done = arguments[0], canvas = document.getElementById("graph");
        let last = null, same = 0;
        const look = () => {
          const now = canvas.toDataURL();
          same = now === last ? same + 1 : 0;
          last = now;
          same < 4 ? setTimeout(look, 60) : done(now);
        };
        setTimeout(look, 150);
        """
    )


def by_id(browser, name):
    return browser.find_element("id", name)


def search(browser, text):
    field = by_id(browser, "search")
    field.clear()
    field.send_keys(text)
    return field


def choose(browser, field, value):
    by_id(browser, field).find_element("css selector", f"option[value='{value}']").click()


def counts(browser):
    return [int(by_id(browser, f"{kind}-count").text.replace(",", "")) for kind in ("kept", "dropped", "added")]


def set_slider(browser, value):
    script = "const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('input', { bubbles: true }))"
    browser.execute_script(script, by_id(browser, "threshold"), value)


def color_scheme(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_it_opens_without_an_error_and_without_a_request(driver, page):
    driver.get_log("performance")
    driver.get_log("browser")
    driver.get(page.as_uri())
    drawn(driver)
    assert driver.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked == [page.as_uri()]


def test_the_policy_of_the_page_forbids_requests_and_other_scripts(browser):
    refused = browser.execute_async_script(
        """
        const done = arguments[0];
        document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => setTimeout(() => done("sent"), 500));
        """
    )
    assert refused == "connect-src"
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; document.body.append(s)"
    )
    assert browser.execute_script("return window.hacked") is None


def test_all_sections_have_content(browser):
    for name in ("quality", "changes", "audit"):
        section = by_id(browser, name)
        assert len(section.find_elements("css selector", "article")) == 2
        assert "undefined" not in section.text
        assert "NaN" not in section.text
        assert "[object" not in section.text
    assert len(browser.find_elements("css selector", ".chosen-epoch")) == 6
    ours, plain = by_id(browser, "quality").find_elements("css selector", "article")
    assert "gain of this run" in ours.text
    assert "gain of this run" not in plain.text  # there is nothing that it is compared with


def test_search_finds_a_node_and_shows_its_panel(browser):
    before = drawn(browser)
    search(browser, "node 1")
    found = [item.text for item in browser.find_elements("css selector", "#found button")]
    assert found[0] == "node 1"
    assert "node 10" in found
    by_id(browser, "found").find_element("tag name", "button").click()
    panel = by_id(browser, "panel").text
    assert panel.startswith("node 1\n")
    assert "prediction" in panel
    assert "Neighbors: " in panel
    assert "feature 0" in panel
    assert drawn(browser) != before
    search(browser, "nobody")
    assert by_id(browser, "found").text == "no such node in the page"


def test_a_click_on_a_node_shows_its_panel_and_one_beside_it_clears_it(browser):
    search(browser, "node 7").send_keys("\ue007")
    drawn(browser)
    canvas = by_id(browser, "graph")
    canvas.send_keys("\ue00c")  # Escape
    assert by_id(browser, "panel").text.startswith("No node selected")
    actions = webdriver.ActionChains(browser)
    actions.move_to_element(canvas).click().perform()  # the search has brought the node to the middle
    assert by_id(browser, "panel").text.startswith("node 7\n")


def test_neighbors_in_the_panel_lead_on_and_have_the_probabilities_of_the_run(browser):
    search(browser, "node 7").send_keys("\ue007")
    row = browser.find_element("css selector", "#panel tbody tr")
    name, _, kind, probability = (cell.text for cell in row.find_elements("tag name", "td"))
    assert kind in ("kept", "dropped", "added")
    assert (float(probability) >= 0.5) == (kind != "dropped")
    row.find_element("tag name", "button").click()
    assert by_id(browser, "panel").text.startswith(f"{name}\n")


def test_switches_and_the_slider_change_the_drawn_edges(browser):
    kept, dropped, added = counts(browser)
    assert kept + dropped == browser.execute_script("return d3.sum(content.runs[0].explorer.given)")
    pictures = [drawn(browser)]
    shown = [by_id(browser, "scope").text]
    by_id(browser, "kept").click()
    pictures.append(drawn(browser))
    shown.append(by_id(browser, "scope").text)
    assert f"{dropped + added} edges" in shown[1]
    by_id(browser, "kept").click()
    assert drawn(browser) == pictures[0]
    set_slider(browser, 0.99)
    assert counts(browser)[1] > dropped
    assert counts(browser)[2] <= added
    pictures.append(drawn(browser))
    set_slider(browser, 0)
    assert counts(browser)[:2] == [kept + dropped, 0]
    pictures.append(drawn(browser))
    assert len(set(pictures)) == 4


def test_colors_views_and_runs(browser):
    pictures = [drawn(browser)]
    for field, value in (("color", "prediction"), ("color", "error"), ("view", "wrong"), ("view", "rewired")):
        choose(browser, field, value)
        pictures.append(drawn(browser))
    assert len(set(pictures)) == len(pictures)
    assert [item.text for item in browser.find_elements("css selector", "#legend li")][:2] == ["right", "wrong"]
    search(browser, "node 9").send_keys("\ue007")
    choose(browser, "view", "selected")
    around = int(by_id(browser, "scope").text.split()[0])
    assert 1 < around < 60
    choose(browser, "run", "1")
    assert not by_id(browser, "threshold-label").is_displayed()  # it has no probabilities
    assert counts(browser)[1:] == [0, 0]


def test_a_suspicious_edge_leads_to_the_explorer(browser):
    button = browser.find_element("css selector", "#audit .show-pair")
    source = button.text.split(" – ")[0]
    before = drawn(browser)
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", button)
    button.click()
    assert by_id(browser, "panel").text.startswith(f"{source}\n")
    assert drawn(browser) != before
    top = browser.execute_script("return document.getElementById('explorer').getBoundingClientRect().top")
    assert 0 <= top < 200


def test_the_layout_brings_neighbors_together_and_is_the_same_again(browser, page):
    script = """
        const { x, y } = content.graphs[0], { source, target, given } = content.runs[0].explorer;
        const distance = (a, b) => Math.hypot(x[a] - x[b], y[a] - y[b]), nodes = d3.range(x.length);
        const edges = d3.range(source.length).filter((pair) => given[pair]);
        return [explorer.layout.settled, x, y, d3.mean(edges, (pair) => distance(source[pair], target[pair])),
          d3.mean(d3.cross(nodes, nodes, distance))];
    """
    settled, *places, joined, all_pairs = browser.execute_script(script)
    assert settled
    assert joined < 0.7 * all_pairs
    assert all(-1e-9 <= place <= 1 + 1e-9 for axis in places for place in axis)
    browser.get(page.as_uri())
    drawn(browser)
    assert browser.execute_script(script)[1:3] == places


def test_everything_can_be_reached_and_used_with_the_keyboard(browser):
    reached, body = [], browser.find_element("tag name", "body")
    body.send_keys("\ue004")
    for _ in range(400):
        active = browser.switch_to.active_element
        name = active.get_attribute("id")
        if active.tag_name == "body":
            break
        reached.append(name)
        active.send_keys("\ue004")  # Tab
    wanted = ["theme", "run", "search", "view", "color", "kept", "dropped", "added", "threshold", "graph", "panel"]
    assert [name for name in reached if name in wanted] == wanted
    canvas, pictures = by_id(browser, "graph"), [drawn(browser)]
    for key in ("\ue014", "+", "\ue007"):  # arrow to the right, zoom, Enter
        canvas.send_keys(key)
        pictures.append(drawn(browser))
    assert len(set(pictures)) == 4
    assert not by_id(browser, "panel").text.startswith("No node selected")
    outline = "arguments[0].focus(); return getComputedStyle(arguments[0]).outlineStyle"
    canvas.send_keys("\ue004")
    assert browser.execute_script(outline, browser.switch_to.active_element) != "none"


def test_a_phone_shows_everything_in_its_width(browser):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    picture = drawn(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    for name in ("search", "threshold", "graph", "panel", "theme"):
        assert browser.execute_script(IN_SIGHT, by_id(browser, name)), name
    search(browser, "node 3").send_keys("\ue007")
    assert by_id(browser, "panel").text.startswith("node 3\n")
    assert drawn(browser) != picture


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser, scheme):
    color_scheme(browser, scheme)
    search(browser, "node 3").send_keys("\ue007")
    drawn(browser)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 300) == (scheme == "dark")
    seen, weak = browser.execute_script(CONTRAST)
    assert seen > 300
    assert weak == []


def test_the_button_changes_the_theme_and_the_graph_with_it(browser):
    color_scheme(browser, "light")
    before, theme = drawn(browser), by_id(browser, "theme")
    assert theme.text == "Dark"
    theme.click()
    assert theme.text == "Light"
    assert drawn(browser) != before
    theme.click()
    assert drawn(browser) == before


def test_a_long_name_leaves_room_for_the_rest(browser):
    search(browser, LONG[:40])
    assert by_id(browser, "found").size["height"] < 200
    by_id(browser, "search").send_keys("\ue007")
    panel = by_id(browser, "panel")
    assert panel.find_element("tag name", "h3").text == LONG
    assert panel.find_element("tag name", "h3").size["height"] < 200
    for button in panel.find_elements("css selector", "td button"):
        assert button.size["height"] < 100


def test_names_are_shown_as_text_and_nothing_of_them_runs(browser):
    for name in HOSTILE:
        search(browser, name)
        assert by_id(browser, "found").find_element("tag name", "button").text == name
        by_id(browser, "search").send_keys("\ue007")
        assert by_id(browser, "panel").find_element("tag name", "h3").text == name
    shown = [item.text for item in browser.find_elements("css selector", "#legend li")]
    assert shown == CLASSES
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.querySelectorAll('img, b, iframe').length") == 0
    assert browser.execute_script("return document.querySelectorAll('script').length") == 3
    assert browser.execute_script("return ({}).polluted") is None
