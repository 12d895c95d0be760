/* The page of runs. All names come from the user's data: they are only ever set as text, and looked up in Maps. */
"use strict";

const content = JSON.parse(document.getElementById("content").textContent);
const byId = (id) => document.getElementById(id);

/* ---------- small helpers ---------- */

/** An element with properties, attributes (`aria-…`, `scope`, `colspan`) and children; strings become text. */
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child !== null));
  return element;
}

const card = (title, ...children) => make("div", { className: "card" }, make("h4", {}, title), ...children);
const note = (text) => make("p", { className: "missing" }, text);
const count = d3.format(",");
const points = (share) => (100 * share).toFixed(2);

function figure(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return count(value);
  return Math.abs(value) < 100 ? value.toFixed(4) : d3.format(",.1f")(value);
}

/** A table; a column is [heading, function of a row that gives text or an element, whether it is a number]. */
function table(columns, rows, classOf) {
  const cell = (tag, value, number) => make(tag, { className: number ? "number" : "" }, value);
  const head = columns.map(([heading, , number]) => cell("th", heading, number));
  head.forEach((each) => each.setAttribute("scope", "col"));
  const body = rows.map((row) =>
    make("tr", { className: classOf ? classOf(row) : "" }, columns.map(([, of, number]) => cell("td", of(row), number))));
  const whole = make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
  return make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Table" }, whole);
}

const themeColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/* ---------- charts ---------- */

const WIDTH = 460, HEIGHT = 240, MARGIN = { top: 10, right: 12, bottom: 34, left: 46 };

function chart(label) {
  const svg = d3.create("svg").attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`).attr("role", "img").attr("aria-label", label);
  const x = [MARGIN.left, WIDTH - MARGIN.right], y = [HEIGHT - MARGIN.bottom, MARGIN.top];
  return { svg, x, y };
}

function axes({ svg }, x, y, xTitle, yTitle, xTicks) {
  const bottom = xTicks || d3.axisBottom(x).ticks(6);
  svg.append("g").attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`).call(bottom.tickSizeOuter(0));
  svg.append("g").attr("transform", `translate(${MARGIN.left},0)`).call(d3.axisLeft(y).ticks(5).tickSizeOuter(0));
  svg.append("text").attr("x", WIDTH - MARGIN.right).attr("y", HEIGHT - 4).attr("text-anchor", "end").text(xTitle);
  svg.append("text").attr("x", MARGIN.left + 6).attr("y", MARGIN.top + 4).text(yTitle);
}

function curveCards(curves, metric) {
  if (curves.missing) return [card("Training curves", note(curves.missing))];
  const cards = [];
  if (curves.curves.length) {
    const area = chart("Validation metric by epoch");
    const last = d3.max(curves.curves, (one) => d3.max(one.epoch));
    const x = d3.scaleLinear([0, last], area.x);
    const y = d3.scaleLinear(d3.extent(curves.curves.flatMap((one) => one.val)), area.y).nice();
    axes(area, x, y, "epoch", `validation ${metric}`);
    for (const one of curves.curves) {
      const line = d3.line((_, k) => x(one.epoch[k]), (value) => y(value));
      area.svg.append("path").attr("d", line(one.val)).attr("fill", "none").attr("stroke", "var(--kept)").attr("stroke-width", 1.2);
    }
    for (const one of curves.curves) {
      const [epoch, value] = one.chosen;
      const dot = area.svg.append("circle").attr("cx", x(epoch)).attr("cy", y(value)).attr("r", 4).attr("class", "chosen-epoch");
      dot.attr("fill", "var(--accent)").append("title").text(`${one.name}: epoch ${epoch}, ${points(value)} %`);
    }
    cards.push(card("Training curves", area.svg.node(), note("Each line is a run; the dot marks the epoch that validation chose.")));
  } else cards.push(card("Training curves", note("These runs have no validation nodes.")));
  const losses = Object.entries(curves.losses);
  if (losses.length) {
    const area = chart("Losses by epoch");
    const x = d3.scaleLinear([0, d3.max(curves.loss_epoch) || 1], area.x);
    const y = d3.scaleLinear([0, d3.max(losses.flatMap(([, values]) => values)) || 1], area.y).nice();
    axes(area, x, y, "epoch", "loss, mean of the runs");
    losses.forEach(([name, values], k) => {
      const line = d3.line((_, place) => x(curves.loss_epoch[place]), (value) => y(value));
      const color = k ? "var(--dropped)" : "var(--added)";
      area.svg.append("path").attr("d", line(values)).attr("fill", "none").attr("stroke", color).attr("stroke-width", 1.6);
      area.svg.append("text").attr("x", WIDTH - MARGIN.right).attr("y", MARGIN.top + 8 + 15 * k).attr("text-anchor", "end")
        .text(name === "train_loss" ? "training" : "validation").style("fill", color);
    });
    cards.push(card("Losses", area.svg.node(), note("Training: all terms of the loss. Validation: the classification loss alone.")));
  }
  return cards;
}

/** A matrix as a table whose cells are shaded by `share`; text is black or white, whichever is easier to read. */
function heat(names, values, shareOf, textOf, corner) {
  const low = d3.rgb(themeColor("surface")), high = d3.rgb(themeColor("accent"));
  const mix = d3.interpolateRgb(low, high);
  const cell = (value, row, column) => {
    const color = d3.rgb(mix(0.65 * shareOf(value, row, column)));
    const text = names.length <= 15 ? textOf(value) : "";
    const td = make("td", { title: `${names[row]} → ${names[column]}: ${textOf(value)}` }, text);
    td.style.backgroundColor = color.formatRgb();
    td.style.color = luminance(color) > 0.18 ? "#000" : "#fff";
    return td;
  };
  const head = names.map((name) => make("th", { scope: "col", title: name }, short(name)));
  const rows = values.map((row, k) =>
    make("tr", {}, make("th", { scope: "row", title: names[k] }, short(names[k])), row.map((value, j) => cell(value, k, j))));
  const whole = make("table", { className: "heat" },
    make("thead", {}, make("tr", {}, make("td", {}, corner || ""), head)), make("tbody", {}, rows));
  return make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Matrix of classes" }, whole);
}

const short = (name) => (name.length > 16 ? `${name.slice(0, 15)}…` : name);

function luminance(color) {
  const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(color.r) + 0.7152 * part(color.g) + 0.0722 * part(color.b);
}

function confusionCard(confusion) {
  if (confusion.missing) return card("Confusion matrix", note(confusion.missing));
  const { classes, counts } = confusion, sums = counts.map((row) => Math.max(d3.sum(row), 1));
  const right = d3.sum(counts, (row, k) => row[k]) / d3.sum(sums);
  return card("Confusion matrix", heat(classes, counts, (value, row) => value / sums[row], count, "true / predicted"),
    note(`Test nodes of all runs, each run on its own: ${points(right)} % are right.`));
}

function degreesCard(degrees) {
  const area = chart("Histogram of degrees before and after");
  const last = degrees.bins.length - 1, x = d3.scaleBand(d3.range(last), area.x).padding(0.15);
  const y = d3.scaleLinear([0, 1.25 * d3.max([...degrees.before, ...degrees.after]) || 1], area.y).nice();
  const name = (k) => (degrees.bins[k + 1] - degrees.bins[k] > 1 ? `${degrees.bins[k]}–${degrees.bins[k + 1] - 1}` : `${degrees.bins[k]}`);
  const shown = d3.range(0, last, Math.ceil(last / 8));
  axes(area, x, y, "degree", "nodes", d3.axisBottom(x).tickValues(shown).tickFormat(name));
  ["before", "after"].forEach((when, k) => {
    const width = x.bandwidth() / 2;
    area.svg.append("g").selectAll("rect").data(degrees[when]).join("rect")
      .attr("x", (_, bin) => x(bin) + k * width).attr("width", width)
      .attr("y", y).attr("height", (value) => y(0) - y(value)).attr("fill", k ? "var(--added)" : "var(--kept)")
      .append("title").text((value, bin) => `degree ${name(bin)}: ${count(value)} nodes ${when}`);
    area.svg.append("text").attr("x", WIDTH - MARGIN.right).attr("y", MARGIN.top + 8 + 15 * k).attr("text-anchor", "end")
      .text(`${when}: mean ${degrees.mean[k].toFixed(1)}, ${count(degrees.isolated[k])} isolated`)
      .style("fill", k ? "var(--added)" : "var(--muted)");
  });
  return card("Degrees", area.svg.node());
}

/* ---------- sections ---------- */

function qualityOf(run) {
  const cards = make("div", { className: "cards three" });
  cards.append(tableCard(run), confusionCard(run.confusion), ...curveCards(run.curves, run.about.metric));
  if (run.choice) cards.append(choiceCard(run.choice));
  return cards;
}

function tableCard(run) {
  const title = `Test ${run.about.metric}`;
  if (run.table.missing) return card(title, note(run.table.missing));
  const { rows, absent } = run.table;
  const values = rows.flatMap((row) => row.values);
  const scale = d3.scaleLinear(values.length ? d3.extent(values) : [0, 1], [6, 94]);
  const columns = [
    ["model", (row) => make("span", {}, row.name, make("br"), make("small", {}, row.role))],
    ["test %", (row) => withRange(row.test === null ? "–" : points(row.test), row.interval && row.interval.map(points)), true],
    ["runs", (row) => strip(row, scale)],
    ...(rows.length > 1 ? [["gain of this run", gainText, true]] : []),
  ];
  const parts = [table(columns, rows, (row) => (row.role === "this run" ? "chosen" : ""))];
  parts.push(note(intervalText(rows)));
  if (absent.length) {
    parts.push(note(`Not in the folder of runs, on the same splits and seeds: ${absent.join("; ")}. Train them there to compare.`));
  }
  const whole = card(title, ...parts);
  whole.classList.add("full");
  return whole;
}

function intervalText(rows) {
  if (!rows.every((row) => row.interval)) return "A 95 % interval needs three splits or more, or six seeds of one split.";
  if (!rows.some((row) => row.over === "seeds")) return "Small figures are 95 % intervals.";
  return "Small figures are 95 % intervals over the seeds of one split: they measure the chance of training, not that of the split.";
}

const withRange = (value, range) => make("span", {}, value, range ? [make("br"), make("small", {}, range.join(" to "))] : []);

function strip(row, scale) {
  const svg = d3.create("svg").attr("viewBox", "0 0 100 18").attr("role", "img").attr("aria-label", `${row.values.length} runs`);
  if (row.interval) {
    svg.append("line").attr("x1", scale(row.interval[0])).attr("x2", scale(row.interval[1])).attr("y1", 9).attr("y2", 9)
      .attr("stroke", "var(--kept)").attr("stroke-width", 6).attr("stroke-linecap", "round").attr("opacity", 0.45);
  }
  svg.selectAll("circle").data(row.values).join("circle").attr("cx", scale).attr("cy", 9).attr("r", 2.5).attr("fill", "var(--muted)");
  if (row.test !== null) svg.append("circle").attr("cx", scale(row.test)).attr("cy", 9).attr("r", 4.5).attr("fill", "var(--accent)");
  const element = svg.node();
  element.style.width = "100px";
  return element;
}

function gainText(row) {
  if (!row.gain) return "";
  const { mean, interval, outcome, verdict } = row.gain;
  const signed = (value) => (value < 0 ? "−" : "+") + points(Math.abs(value));
  const kind = outcome === "better" ? "good" : outcome === "worse" ? "bad" : "";
  return withRange(make("span", { className: kind }, `${signed(mean)}, ${verdict}`), interval && interval.map(signed));
}

function choiceCard(choice) {
  const columns = [
    ["rung", (rung) => rung.name + (rung.name === choice.chosen ? " (chosen)" : "")],
    ["what it is", (rung) => rung.about],
    ["validation %", (rung) => (rung.val === null ? "diverged" : points(rung.val)), true],
    ["behind the best", (rung) => (rung.behind === null ? "–" : `${points(rung.behind)} ± ${points(rung.error)}`), true],
    ["runs", (rung) => String(rung.runs), true],
  ];
  const whole = card("The ladder of auto", make("p", {}, `${choice.sentence[0].toUpperCase()}${choice.sentence.slice(1)}.`),
    table(columns, choice.rungs, (rung) => (rung.name === choice.chosen ? "chosen" : "")),
    note("The plainest rung whose distance to the best one is within its error is chosen, on validation alone. Rungs with fewer runs were stopped early."));
  whole.classList.add("full");
  return whole;
}

function changesOf(run) {
  const found = run.structure;
  if (found.missing) return card("The learned graph", note(found.missing));
  const cards = make("div", { className: "cards" });
  const kinds = ["kept", "dropped", "added"], { counts } = found;
  const bar = make("div", { className: "bar" }, kinds.map((kind) => {
    const part = make("div", { className: kind });
    part.style.flex = counts[kind];
    return part;
  }));
  const tiles = make("div", { className: "tiles" }, kinds.map((kind) => make("div", {}, make("strong", {}, count(counts[kind])), kind)));
  const about = run.about.rewires
    ? `Edges at a probability of one half or more, mean of the runs. ${count(counts.candidates)} pairs were candidates.`
    : "This model does not change the graph.";
  cards.append(card("Edges", tiles, bar, note(about)), degreesCard(found.degrees));
  if (found.all) {
    cards.append(matrices(found, "Edges between classes", "edges", (value) => (Number.isInteger(value) ? count(value) : value.toFixed(1))));
    cards.append(matrices(found, "Neighbors of a class", "neighbors", (value) => value.toFixed(2)));
  }
  cards.append(...measureCards(found));
  return cards;
}

/** Matrices before and after, of all edges or of those between unseen nodes. */
function matrices(found, title, name, textOf) {
  const place = make("div", { className: "pair" });
  const draw = (which) => {
    place.replaceChildren(...["before", "after"].map((when) => {
      const values = found[which][when][name], sums = values.map((row) => Math.max(d3.sum(row), 1e-9));
      return make("div", {}, make("h4", {}, when), heat(found.classes, values, (value, row) => value / sums[row], textOf));
    }));
  };
  let choice = null;
  const what = name === "edges" ? "Number of edges; shades are shares of a row." : "Mean share of each class (column) among the neighbors of a node (row).";
  const whole = card(title);
  if (found.unseen) {
    choice = make("select", {}, make("option", { value: "all" }, "all nodes"), make("option", { value: "unseen" }, "pairs of unseen nodes"));
    choice.addEventListener("change", () => draw(choice.value));
    whole.append(make("label", {}, "Of ", choice));
  }
  draw("all");
  whole.append(place, note(found.unseen ? `${what} Unseen: neither node was trained on; mean of the runs, each with its own graph.` : what));
  if (found.classes.length > 5) whole.classList.add("full");
  return whole;
}

function measureCards(found) {
  const columns = [["measure", (row) => row.name], ["before", (row) => figure(row.before), true], ["after", (row) => figure(row.after), true]];
  const words = new Map([["train_train", "training – training"], ["train_other", "training – unseen"], ["other_other", "unseen – unseen"]]);
  const cards = [card("Measures", table(columns, found.measures))];
  if (found.pairs.length) {
    const warning = found.sentence ? `Warning: ${found.sentence}.` : "A rise among training nodes alone would be overfitting.";
    const pairs = table([["nodes", (row) => words.get(row.kind)], ...columns], found.pairs);
    cards.push(card("Measures by whether the nodes were trained on", pairs, note(warning)));
  }
  return cards;
}

function auditOf(run, place) {
  if (run.audit.missing) return card("Audit", note(run.audit.missing));
  const name = (row, end) => `${row[`${end}_class`]}${row[`${end}_known`] ? "" : "?"}`;
  const columns = [
    ["nodes", (row) => make("button", { type: "button", className: "plain show-pair" }, `${row.source} – ${row.target}`)],
    ["classes", (row) => `${name(row, "source")} – ${name(row, "target")}`],
    ["evidence", (row) => row.evidence.toFixed(2), true],
    ["probability", (row) => (row.probability === null ? "–" : row.probability.toFixed(3)), true],
    ["similarity", (row) => row.similarity.toFixed(2), true],
    ["common neighbors", (row) => String(row.common_neighbors), true],
  ];
  const list = (rows) => {
    const whole = table(columns, rows);
    whole.querySelectorAll(".show-pair").forEach((button, k) => {
      const row = rows[k];
      button.disabled = !explorer.has(place, row.source, row.target);
      button.addEventListener("click", () => explorer.showPair(place, row.source, row.target));
    });
    whole.classList.add("tall");
    return whole;
  };
  return make("div", { className: "cards" },
    card("Edges that may be wrong", list(run.audit.suspicious)),
    card("Edges that may be missing", list(run.audit.absent)),
    make("p", {}, "Evidence is the logarithm of the odds that a pair with these facts is an edge of this graph and not a random pair. A class with a question mark is a prediction. Click a pair to see it in the explorer."));
}

/* ---------- explorer ---------- */

const KINDS = ["kept", "dropped", "added"];
const SLICE = 1500; // edges drawn per frame, so that no frame waits for all of them
const RUN_OF_LINES = 24; // lines in one path: longer paths take the browser longer per line
const SPARE = 0.5; // how far the picture reaches beyond the window on each side, as a share of its size
const MOST_ROWS = 200; // neighbors listed in the panel
const MOST_CENTERS = 10; // nodes whose surroundings are shown together

const SLICE_MS = 12; // time for the layout in each frame
const SKETCH = 1500; // edges drawn while the layout is not settled
const STEPS = 100; // of the layout
const SMOOTHINGS = 20; // of the places in which the layout begins
const DROPPED_PULL = 0.2; // how strongly an edge of probability 0 pulls its ends together, compared with one of 1

/** Places `x` and `y` of the nodes of a graph between 0 and 1, by forces; the same on every call, a slice at a time. */
class Layout {
  constructor(graph, runs) {
    this.graph = graph;
    const links = runs.flatMap((run) => d3.range(run.source.length)
      .filter((pair) => run.given[pair] || run.probability[pair] >= 0.5)
      .map((pair) => ({
        source: run.source[pair], target: run.target[pair],
        weight: Math.max(run.probability[pair], DROPPED_PULL) / runs.length,
      })));
    const count = graph.ids.length, degree = new Float64Array(count).fill(1);
    for (const { source, target, weight } of links) { degree[source] += weight; degree[target] += weight; }
    const random = d3.randomNormal.source(d3.randomLcg(0.5))();
    const [xs, ys] = [0, 1].map(() => smoothed(links, degree, Float64Array.from({ length: count }, random)));
    const spread = 10 * Math.sqrt(count);
    this.nodes = d3.range(count).map((node) => ({ x: spread * xs[node], y: spread * ys[node] }));
    const pull = d3.forceLink(links).distance(0)
      .strength((link) => link.weight / Math.min(degree[link.source.index], degree[link.target.index]));
    this.forces = d3.forceSimulation(this.nodes).alphaDecay(1 - 0.001 ** (1 / STEPS)).stop()
      .force("link", pull).force("charge", d3.forceManyBody())
      .force("x", d3.forceX().strength(0.05)).force("y", d3.forceY().strength(0.05));
    this.place();
  }

  get settled() {
    return this.forces.alpha() < this.forces.alphaMin();
  }

  step() {
    const end = performance.now() + SLICE_MS;
    while (!this.settled && performance.now() < end) this.forces.tick();
    this.place();
  }

  /** Scale the places to the square; single nodes far outside are brought to its border. */
  place() {
    const middle = ["x", "y"].map((axis) => d3.median(this.nodes, (node) => node[axis]));
    const away = this.nodes.map((node) => Math.hypot(node.x - middle[0], node.y - middle[1]));
    const reach = 1.1 * Math.max(d3.quantile(away, 0.98) || 0, 1e-9);
    ["x", "y"].forEach((axis, k) => {
      this.graph[axis] = this.nodes.map((node, place) =>
        0.5 + (0.5 * (node[axis] - middle[k]) * Math.min(1, reach / Math.max(away[place], 1e-12))) / reach);
    });
  }
}

/** Values that are alike for nodes that are close in the graph: averages along the edges, with mean 0 and deviation 1. */
function smoothed(links, degree, values) {
  for (let round = 0; round < SMOOTHINGS; round++) {
    const next = values.slice();
    for (const { source, target, weight } of links) {
      next[source] += weight * values[target];
      next[target] += weight * values[source];
    }
    const means = next.map((value, node) => value / degree[node]), middle = d3.mean(means), spread = d3.deviation(means) || 1;
    values = means.map((value) => (value - middle) / spread);
  }
  return values;
}

/** What a run knows of its graph, with neighbors of each node. */
class ExploredRun {
  constructor(run) {
    this.run = run.explorer;
    this.graph = content.graphs[this.run.graph];
    const nodes = this.graph.ids.length;
    this.pairsOf = Array.from({ length: nodes }, () => []);
    this.run.source.forEach((source, pair) => {
      this.pairsOf[source].push(pair);
      this.pairsOf[this.run.target[pair]].push(pair);
    });
    this.numberOf = new Map(this.graph.ids.map((id, node) => [id, node]));
  }

  /** 0, 1 or 2 for kept, dropped or added, -1 for a candidate that is not an edge. */
  kind(pair, threshold) {
    const is = this.run.probability[pair] >= threshold;
    if (this.run.given[pair]) return is ? 0 : 1;
    return is ? 2 : -1;
  }

  isWrong(node) {
    const { label } = this.graph, { prediction } = this.run;
    return label[node] >= 0 && prediction[node] >= 0 && label[node] !== prediction[node];
  }

  otherEnd(pair, node) {
    return this.run.source[pair] === node ? this.run.target[pair] : this.run.source[pair];
  }

  /** Nodes to show: all, or those up to one edge away from some. */
  within(view, selected, threshold) {
    const all = d3.range(this.graph.ids.length);
    if (view === "all") return { shown: new Set(all), centers: 0 };
    let centers = selected === null ? [] : [selected];
    if (view === "wrong") {
      centers = all.filter((node) => this.isWrong(node)).sort((a, b) => this.run.confidence[b] - this.run.confidence[a]);
    } else if (view === "rewired") {
      const changes = all.map((node) => this.pairsOf[node].filter((pair) => this.kind(pair, threshold) > 0).length);
      centers = all.filter((node) => changes[node]).sort((a, b) => changes[b] - changes[a]);
    }
    const shown = new Set(centers.slice(0, MOST_CENTERS));
    for (const node of [...shown]) {
      for (const pair of this.pairsOf[node]) if (this.kind(pair, threshold) >= 0) shown.add(this.otherEnd(pair, node));
    }
    return { shown, centers: centers.length };
  }
}

class Explorer {
  constructor(runs) {
    this.explored = runs.map((run) => (run.explorer.missing ? null : new ExploredRun(run)));
    this.layouts = new Map(content.graphs.map((graph) => {
      const of = this.explored.filter((each) => each !== null && each.graph === graph);
      return [graph, new Layout(graph, of.map((each) => each.run))];
    }));
    this.place = this.explored.findIndex((each) => each !== null);
    this.selected = null;
    this.pair = null; // two nodes of the audit's list
    this.canvas = byId("graph");
    this.picture = null; // the drawn graph and the transform it was drawn with
    this.job = null; // the next picture, while it is drawn
    this.waiting = false;
    this.touched = false; // whether the user has moved the graph
  }

  get of() {
    return this.explored[this.place];
  }

  get layout() {
    return this.layouts.get(this.of.graph);
  }

  has(place, ...ids) {
    const { [place]: of } = this.explored;
    return of !== null && ids.every((id) => of.numberOf.has(String(id)));
  }

  start(runs) {
    if (this.place < 0) {
      byId("explorer-body").hidden = true;
      byId("explorer-missing").hidden = false;
      byId("explorer-missing").append(note(runs[0].explorer.missing));
      return;
    }
    runs.forEach((run, k) => byId("run").append(make("option", { value: String(k), disabled: this.explored[k] === null }, run.name)));
    byId("run-label").hidden = runs.length < 2;
    byId("run").value = String(this.place);
    const refresh = () => this.refresh();
    byId("run").addEventListener("change", () => this.setRun(Number(byId("run").value)));
    for (const id of ["color", ...KINDS]) byId(id).addEventListener("change", refresh);
    byId("view").addEventListener("change", () => { this.refresh(); this.fit(); });
    byId("threshold").addEventListener("input", refresh);
    byId("controls").addEventListener("submit", (event) => { event.preventDefault(); this.search(true); });
    byId("search").addEventListener("input", () => this.search(false));
    byId("search").addEventListener("keydown", (event) => { if (event.key === "Escape") this.closeSearch(); });
    this.zoom = d3.zoom().scaleExtent([0.3, 60]).on("zoom", (event) => this.moved(event)).clickDistance(4);
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => this.select(this.nodeAt(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    byId("zoom-in").addEventListener("click", () => this.zoomBy(1.5));
    byId("zoom-out").addEventListener("click", () => this.zoomBy(1 / 1.5));
    byId("zoom-fit").addEventListener("click", () => this.fit());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.setRun(this.place);
    this.resize();
  }

  /* --- what is shown --- */

  setRun(place) {
    const before = this.of.graph;
    this.place = place;
    byId("run").value = String(place);
    const { run, graph } = this.of;
    if (graph !== before) { this.selected = null; this.pair = null; this.touched = false; }
    const known = run.prediction.some((each) => each >= 0);
    for (const option of byId("color").options) option.disabled = option.value !== "class" && !known;
    for (const option of byId("view").options) if (option.value === "wrong") option.disabled = !known;
    byId("threshold-label").hidden = !run.learned;
    this.refresh();
    if (graph !== before) this.fit();
  }

  /** Read the controls, count the edges, and draw. */
  refresh() {
    const { of } = this, { run, graph } = of;
    this.threshold = run.learned ? Number(byId("threshold").value) : 0.5;
    byId("threshold-value").textContent = this.threshold.toFixed(2);
    const { shown, centers } = of.within(byId("view").value, this.selected, this.threshold);
    this.nodes = shown;
    this.centers = centers;
    this.edges = KINDS.map(() => []);
    run.source.forEach((source, pair) => {
      const kind = of.kind(pair, this.threshold);
      if (kind >= 0 && this.nodes.has(source) && this.nodes.has(run.target[pair])) this.edges[kind].push(pair);
    });
    KINDS.forEach((kind, k) => { byId(`${kind}-count`).textContent = count(this.edges[k].length); });
    this.drawn = KINDS.map((kind, k) => (byId(kind).checked ? this.edges[k] : []));
    this.readColors();
    this.plant();
    this.describe();
    this.showPanel();
    this.redraw();
  }

  /** Make the tree that finds the node at a place. */
  plant() {
    const { graph } = this.of;
    this.tree = d3.quadtree([...this.nodes], (node) => graph.x[node], (node) => graph.y[node]);
  }

  describe() {
    const { of } = this, { run, graph } = of, parts = [];
    const edges = d3.sum(this.drawn, (each) => each.length);
    parts.push(`${count(this.nodes.size)} nodes and ${count(edges)} edges are drawn.`);
    if (graph.ids.length < graph.nodes) {
      parts.push(`The page has ${count(graph.ids.length)} of the ${count(graph.nodes)} nodes of the graph, around suspicious edges, misclassified nodes and the most rewired ones. For the surroundings of another node, write the page with --node ID.`);
    }
    if (run.left_out) parts.push(`${count(run.left_out)} candidates of the smallest probabilities are not in the page.`);
    if (this.centers > MOST_CENTERS) parts.push(`They are around the first ${MOST_CENTERS} of ${count(this.centers)} such nodes.`);
    if (byId("view").value === "selected" && this.selected === null) parts.push("Select a node first: search it, or show all nodes and click one.");
    byId("scope").textContent = parts.join(" ");
    this.canvas.setAttribute("aria-label", parts[0]);
  }

  readColors() {
    const { graph, run } = this.of, by = byId("color").value, names = graph.classes;
    const colors = names.length <= 10 ? d3.schemeTableau10 : names.map((_, k) => d3.interpolateSinebow(k / names.length));
    const empty = themeColor("empty"), classColor = (value) => (value >= 0 ? colors[value % colors.length] : empty);
    let items = names.map((name, k) => [name, classColor(k)]);
    if (by === "error") {
      items = [["right", themeColor("kept")], ["wrong", themeColor("dropped")], ["no label", empty]];
      this.colorOf = (node) => (graph.label[node] < 0 ? empty : items[this.of.isWrong(node) ? 1 : 0][1]);
    } else {
      const values = by === "class" ? graph.label : run.prediction;
      if (values.some((value) => value < 0)) items.push(["unknown", empty]);
      this.colorOf = (node) => classColor(values[node]);
    }
    byId("legend").replaceChildren(...items.map(([name, color]) => {
      const swatch = make("span", {});
      swatch.style.backgroundColor = color;
      return make("li", {}, swatch, name);
    }));
  }

  /* --- drawing --- */

  resize() {
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    const first = !this.width;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    if (!this.width || !this.height) return;
    this.canvas.width = this.width * this.ratio;
    this.canvas.height = this.height * this.ratio;
    this.zoom.translateExtent([[-1.5, -1.5], [2.5, 2.5]].map(([x, y]) => [x * this.unit, y * this.unit]));
    if (first) this.fit();
    this.redraw();
  }

  /** Pixels of the side of the layout's square at zoom 1. */
  get unit() {
    return Math.min(this.width, this.height);
  }

  get transform() {
    return d3.zoomTransform(this.canvas);
  }

  at(node, transform) {
    const { graph } = this.of;
    return [transform.applyX(graph.x[node] * this.unit), transform.applyY(graph.y[node] * this.unit)];
  }

  /** The picture moves at once; it is drawn anew when it is at rest, or no longer fills the window. */
  moved(event) {
    if (event.sourceEvent) this.touched = true;
    this.paintSoon();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.redraw(), 120);
    if (!this.job && this.picture && !this.fills(this.picture.transform)) this.redraw();
  }

  fills(drawn) {
    const now = this.transform, scale = now.k / drawn.k;
    const left = now.x - drawn.x * scale - SPARE * this.width * scale, top = now.y - drawn.y * scale - SPARE * this.height * scale;
    const size = (1 + 2 * SPARE) * scale;
    return scale < 2 && left <= 0 && top <= 0 && left + size * this.width >= this.width && top + size * this.height >= this.height;
  }

  redraw() {
    if (!this.width || !this.drawn) return;
    const whole = document.createElement("canvas");
    whole.width = this.canvas.width * (1 + 2 * SPARE);
    whole.height = this.canvas.height * (1 + 2 * SPARE);
    const context = whole.getContext("2d"), { transform } = this;
    context.scale(this.ratio, this.ratio);
    context.translate(SPARE * this.width, SPARE * this.height);
    let lines = this.drawn.flatMap((pairs, kind) => pairs.map((pair) => [pair, kind]));
    if (!this.layout.settled) {
      const every = Math.ceil(lines.length / SKETCH);
      lines = lines.filter((_, k) => k % every === 0);
    }
    const { width, height } = this;
    this.job = { whole, context, transform, width, height, lines, next: 0, colors: KINDS.map(themeColor) };
    this.paintSoon();
  }

  paintSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!this.layout.settled) this.settle();
      this.work();
      this.paint();
      if (this.job || !this.layout.settled) this.paintSoon();
    });
  }

  /** Move the layout on. */
  settle() {
    this.layout.step();
    this.plant();
    if (this.layout.settled && !this.touched && this.selected === null) this.fit();
    this.redraw();
  }

  /** Draw a slice of the next picture; nodes come last. */
  work() {
    const { job } = this;
    if (!job) return;
    const { context, transform } = job, end = Math.min(job.next + SLICE, job.lines.length);
    const faint = Math.min(0.7, (18 / Math.sqrt(job.lines.length)) * Math.max(1, transform.k) ** 0.3);
    const xs = [], ys = [], { run } = this.of;
    const place = (node) => {
      if (xs[node] === undefined) [xs[node], ys[node]] = this.at(node, transform);
    };
    for (let first = job.next; first < end; ) {
      const kind = job.lines[first][1];
      context.beginPath();
      let line = first;
      for (; line < end && line < first + RUN_OF_LINES && job.lines[line][1] === kind; line++) {
        const source = run.source[job.lines[line][0]], target = run.target[job.lines[line][0]];
        place(source);
        place(target);
        context.moveTo(xs[source], ys[source]);
        context.lineTo(xs[target], ys[target]);
      }
      context.strokeStyle = job.colors[kind];
      context.globalAlpha = faint;
      context.lineWidth = Math.min(2, 0.8 * transform.k ** 0.3);
      context.stroke();
      first = line;
    }
    job.next = end;
    if (end < job.lines.length) return;
    this.drawNodes(context, transform);
    this.picture = job;
    this.job = null;
  }

  radius(node) {
    return (2.2 + 0.5 * Math.min(6, Math.sqrt(this.of.pairsOf[node].length))) * Math.min(3, this.transform.k ** 0.45);
  }

  drawNodes(context, transform) {
    context.globalAlpha = 1;
    context.lineWidth = 0.8;
    context.strokeStyle = themeColor("surface");
    for (const node of this.nodes) this.drawNode(context, node, transform);
  }

  drawNode(context, node, transform) {
    const [x, y] = this.at(node, transform);
    context.beginPath();
    context.arc(x, y, this.radius(node), 0, 2 * Math.PI);
    context.fillStyle = this.colorOf(node);
    context.fill();
    context.stroke();
  }

  paint() {
    const context = this.canvas.getContext("2d"), { picture, transform } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    if (picture) {
      const scale = transform.k / picture.transform.k, size = (1 + 2 * SPARE) * scale;
      const left = transform.x - (picture.transform.x + SPARE * picture.width) * scale;
      const top = transform.y - (picture.transform.y + SPARE * picture.height) * scale;
      context.drawImage(picture.whole, left, top, size * picture.width, size * picture.height);
    }
    this.paintSelection(context, transform);
  }

  /** The selected node with its edges and neighbors, above a picture that steps back. */
  paintSelection(context, transform) {
    const { of, selected, pair } = this;
    if (selected === null || !this.nodes.has(selected)) return;
    context.globalAlpha = 0.45;
    context.fillStyle = themeColor("surface");
    context.fillRect(0, 0, this.width, this.height);
    context.globalAlpha = 1;
    const around = of.pairsOf[selected].filter((each) => {
      const kind = of.kind(each, this.threshold);
      return kind >= 0 && byId(KINDS[kind]).checked && this.nodes.has(of.otherEnd(each, selected));
    });
    const line = (one, other, color, width) => {
      context.beginPath();
      context.moveTo(...this.at(one, transform));
      context.lineTo(...this.at(other, transform));
      context.strokeStyle = color;
      context.lineWidth = width;
      context.stroke();
    };
    for (const each of around) line(selected, of.otherEnd(each, selected), themeColor(KINDS[of.kind(each, this.threshold)]), 1.8);
    if (pair) {
      context.setLineDash([6, 4]);
      line(...pair, themeColor("text"), 2);
      context.setLineDash([]);
    }
    context.lineWidth = 0.8;
    context.strokeStyle = themeColor("surface");
    for (const each of around) this.drawNode(context, of.otherEnd(each, selected), transform);
    for (const node of pair || [selected]) {
      this.drawNode(context, node, transform);
      context.beginPath();
      context.arc(...this.at(node, transform), this.radius(node) + 4, 0, 2 * Math.PI);
      context.strokeStyle = themeColor("text");
      context.lineWidth = 2;
      context.stroke();
    }
  }

  /* --- moving about --- */

  fit() {
    const { graph } = this.of;
    if (!this.width || !this.nodes || !this.nodes.size) return;
    const nodes = [...this.nodes], x = d3.extent(nodes, (node) => graph.x[node]), y = d3.extent(nodes, (node) => graph.y[node]);
    const scale = Math.min(20, 0.92 / Math.max((x[1] - x[0]) * this.unit / this.width, (y[1] - y[0]) * this.unit / this.height, 1e-6));
    this.lookAt((x[0] + x[1]) / 2, (y[0] + y[1]) / 2, scale);
  }

  lookAt(x, y, scale) {
    const to = d3.zoomIdentity.translate(this.width / 2, this.height / 2).scale(scale).translate(-x * this.unit, -y * this.unit);
    d3.select(this.canvas).call(this.zoom.transform, to);
  }

  zoomBy(factor) {
    d3.select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  key(event) {
    const step = 60 / this.transform.k, moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (Object.hasOwn(moves, event.key)) d3.select(this.canvas).call(this.zoom.translateBy, ...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.3);
    else if (event.key === "-") this.zoomBy(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter") this.select(this.nodeAt(this.width / 2, this.height / 2, Infinity));
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
  }

  nodeAt(x, y, reach = 14) {
    const [left, top] = this.transform.invert([x, y]), { unit } = this;
    const node = this.tree.find(left / unit, top / unit, reach / unit / this.transform.k);
    return node === undefined ? null : node;
  }

  select(node) {
    this.selected = node;
    this.pair = null;
    if (byId("view").value === "selected") this.refresh();
    else { this.showPanel(); this.paintSoon(); }
  }

  /** Select a node and bring it to the middle; all nodes are shown if it is not among those that are. */
  goTo(node) {
    const { graph } = this.of;
    this.select(node);
    if (!this.nodes.has(node)) { byId("view").value = "all"; this.refresh(); }
    this.lookAt(graph.x[node], graph.y[node], Math.max(this.transform.k, 3));
  }

  showPair(place, ...ids) {
    if (place !== this.place) this.setRun(place);
    const { graph, numberOf } = this.of, [one, other] = ids.map((id) => numberOf.get(String(id)));
    byId("view").value = "all";
    this.selected = one;
    this.pair = [one, other];
    this.refresh();
    const distance = Math.max(Math.abs(graph.x[one] - graph.x[other]), Math.abs(graph.y[one] - graph.y[other]));
    this.lookAt((graph.x[one] + graph.x[other]) / 2, (graph.y[one] + graph.y[other]) / 2, Math.min(8, 0.6 / Math.max(distance, 1e-6)));
    byId("explorer").scrollIntoView();
    this.canvas.focus({ preventScroll: true });
  }

  /* --- search --- */

  search(now) {
    const text = byId("search").value.trim(), { ids } = this.of.graph, found = [];
    if (!text) return this.closeSearch();
    const exact = this.of.numberOf.get(text);
    if (exact !== undefined) found.push(exact);
    const lower = text.toLowerCase();
    for (let node = 0; node < ids.length && found.length < 8; node++) {
      if (node !== exact && ids[node].toLowerCase().includes(lower)) found.push(node);
    }
    if (now && found.length) return this.choose(found[0]);
    const buttons = found.map((node) => {
      const button = make("button", { type: "button", className: "plain" }, ids[node]);
      button.addEventListener("click", () => this.choose(node));
      return make("li", {}, button);
    });
    byId("found").replaceChildren(...(buttons.length ? buttons : [make("li", {}, "no such node in the page")]));
    byId("found").hidden = false;
  }

  choose(node) {
    this.closeSearch();
    this.goTo(node);
  }

  closeSearch() {
    byId("found").hidden = true;
  }

  /* --- the panel --- */

  showPanel() {
    const panel = byId("panel");
    if (this.selected === null) {
      panel.replaceChildren(make("h3", {}, "No node selected"), note("Click a node, search one, or choose an edge of the list of suspicious ones."));
      return;
    }
    const node = this.selected, { of } = this, { graph, run } = of;
    const className = (value) => (value >= 0 ? graph.classes[value] || String(value) : "unknown");
    const facts = [["label", className(graph.label[node])]];
    if (run.prediction[node] >= 0) {
      const sure = `${(100 * run.confidence[node]).toFixed(1)} %`;
      const how = run.unseen[node] ? "by the runs that did not use this node" : "by all runs, which trained or validated on it";
      facts.push(["prediction", `${className(run.prediction[node])}, ${sure} (${how})`]);
      if (of.isWrong(node)) facts.push(["", "the prediction is wrong"]);
    } else facts.push(["prediction", "unknown: the trained models are not there"]);
    const list = make("dl", {}, facts.map(([term, text]) => [make("dt", {}, term), make("dd", {}, text)]));
    panel.replaceChildren(make("h3", {}, graph.ids[node]), list, ...this.neighbors(node), ...this.features(node));
  }

  neighbors(node) {
    const { of } = this, { graph, run } = of;
    const rows = of.pairsOf[node].filter((pair) => run.given[pair] || of.kind(pair, this.threshold) >= 0)
      .map((pair) => ({ pair, other: of.otherEnd(pair, node), kind: KINDS[of.kind(pair, this.threshold)] }))
      .sort((a, b) => run.probability[b.pair] - run.probability[a.pair]);
    const arrow = (row) => (graph.undirected ? "" : run.source[row.pair] === node ? "→ " : "← ");
    const columns = [
      ["node", (row) => {
        const button = make("button", { type: "button", className: "plain" }, arrow(row) + graph.ids[row.other]);
        button.addEventListener("click", () => this.goTo(row.other));
        return button;
      }],
      ["class", (row) => (graph.label[row.other] >= 0 ? graph.classes[graph.label[row.other]] : "unknown")],
      ["edge", (row) => row.kind],
      ["probability", (row) => (run.learned ? run.probability[row.pair].toFixed(3) : "–"), true],
    ];
    const before = rows.filter((row) => row.kind !== "added").length, after = rows.filter((row) => row.kind !== "dropped").length;
    const absent = run.degree[node] - before;
    return [
      make("h4", {}, `Neighbors: ${before} before, ${after} after`),
      ...(absent ? [note(`${count(absent)} more before are not in the page.`)] : []),
      rows.length ? table(columns, rows.slice(0, MOST_ROWS)) : note("none"),
      ...(rows.length > MOST_ROWS ? [note(`The ${MOST_ROWS} most probable are listed.`)] : []),
    ];
  }

  features(node) {
    const { names, of } = this.of.graph.features;
    if (!of.length) return [make("h4", {}, "Features"), note("The graph has no features.")];
    const rows = of[node], name = ([k]) => (names.length ? names[k] : `feature ${k}`);
    const shown = rows.length ? table([["feature", name], ["value", ([, value]) => String(value), true]], rows) : note("all are 0");
    return [make("h4", {}, "Features"), shown];
  }
}

/* ---------- the page ---------- */

const { runs } = content, explorer = new Explorer(runs);

function fill(section, of) {
  const place = byId(section).querySelector(".runs");
  place.replaceChildren(...runs.map((run, k) => {
    const head = runs.length > 1 ? [make("h3", {}, run.name)] : [];
    return make("article", { "aria-label": run.name }, head, of(run, k));
  }));
}

function draw() {
  fill("quality", qualityOf);
  fill("changes", changesOf);
  fill("audit", auditOf);
}

const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark";

function themeChanged() {
  byId("theme").textContent = dark() ? "Light" : "Dark";
  draw();
  if (explorer.place >= 0) explorer.refresh();
}

byId("title").textContent = content.title;
byId("about").textContent = runs.map((run) => `${run.name}: ${run.about.runs} on ${run.about.dataset}, ${run.about.metric}, ${run.about.fingerprint.slice(0, 8)}`).join(" · ");
byId("footer").textContent = `Written by gumbel-mpnn ${content.version}. Drawn with D3 (ISC licence).`;
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  themeChanged();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
byId("theme").textContent = dark() ? "Light" : "Dark";
draw();
explorer.start(runs);
