// The interactive part of cutlint's HTML report: filters, the table, byte maps and heat maps, drawn from the facts in #data
// (formats/html.py says what they are). Texts reach the page as text nodes only.
"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("data").textContent);
  const text = (number) => (number < 0 ? "" : facts.strings[number]);
  const bytes = (number) => `${number.toLocaleString("en-US")} B`;
  const counted = (number, noun) => `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;

  const VERDICTS = {
    over: "will not launch", partly: "too large for some", refused: "does not compile", skipped: "passed over", limit: "at the limit", fits: "fits",
    unchecked: "not checked", unknown: "not sized",
  };
  const ORDER = Object.keys(VERDICTS);
  const LEGEND = {
    A: "A", B: "B", SFA: "scale factors A", SFB: "scale factors B", scales: "scales", zeros: "zeros", C: "C", D: "D", "C/D": "C and D, shared", fusion: "fusion",
    barriers: "barriers", tensormaps: "tensor maps", scheduler: "scheduler", other: "other", padding: "padding",
  };

  // ---- elements ----

  function element(name, attributes = {}, ...children) {
    const svg = element.SVG.has(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "onclick") made.addEventListener("click", value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return made;
  }
  element.SVG = new Set(["svg", "rect", "line", "text", "g", "path", "pattern", "defs", "title", "desc"]);

  const mark = (verdict) => element("span", { class: `mark ${verdict}`, "aria-hidden": "true" });

  function place(file, line, column) {
    const shown = element("code", {}, `${text(file)}:${line}:${column}`);
    const link = facts.links[file];
    return link ? element("a", { href: link, rel: "noreferrer" }, shown) : shown;
  }

  // ---- rows ----

  // What `row` is for the GPU of that compute capability, or for the one that allows the least.
  function judge(row, gpu) {
    const at = gpu ? row.limits.findIndex(([, names]) => names.includes(gpu)) : row.limits.length ? 0 : -1;
    row.limit = at < 0 ? null : row.limits[at][0];
    row.verdict = gpu && at >= 0 ? row.verdicts[at + 1] : row.verdicts[0];
    row.headroom = row.total !== null && row.limit !== null && row.verdict !== "refused" ? row.limit - row.total : null;
  }

  const rows = facts.rows.map((row, index) => {
    const [file, line, column, subject, config, footprint, compared, unknown, name, guard, args, decisions, verdicts, found] = row;
    const known = config < 0 ? null : facts.configs[config];
    const sizes = footprint < 0 ? null : facts.footprints[footprint];
    const arch = known ? text(known.arch) : "";
    const limits = facts.limits[arch] || [];
    const total = sizes && sizes.total !== null ? sizes.total : null;
    const made = {
      index, file, line, column, subject: text(subject), known, sizes, unknown: text(unknown), name: text(name), guard: text(guard),
      args, decisions: facts.decisions[decisions] || [], verdicts: verdicts.map(text), found, arch, limits, total,
      compared: compared < 0 ? null : facts.footprints[compared],
      tile: known ? known.cta_tile.join("×") : "",
      types: known ? text(known.types) : "",
      fusion: known ? text(known.fusion) : "",
      swap: known ? String(known.swap_ab) : "",
      cluster: known ? (known.dynamic_cluster ? "dynamic" : known.cluster.map((n) => n ?? "?").join("×")) : "",
      stages: sizes ? sizes.stages : null,
    };
    judge(made, "");
    made.group = known ? [arch, made.tile, made.types].join(" ") : made.name;
    return made;
  });
  const folded = (value) => value.toLowerCase().replaceAll("×", "x");
  for (const row of rows) {
    const said = row.found.map((number) => text(facts.findings[number].rule));
    row.words = folded([row.subject, text(row.file), row.name, row.group, ...said].join(" "));
  }

  // ---- state, kept in the URL's fragment ----

  const FILTERS = [["gpu", "GPU"], ["arch", "Architecture"], ["tile", "CTA tile"], ["types", "Types"], ["fusion", "Fusion"], ["swap", "SwapAB"], ["verdict", "Verdict"]];
  const START = { gpu: "", arch: "", tile: "", types: "", fusion: "", swap: "", verdict: "", q: "", sort: "headroom", order: "ascending", open: "" };
  let state = { ...START };
  const turned = new Map(); // groups that somebody opened or closed

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    state = { ...START };
    for (const key of Object.keys(START)) if (given.has(key)) state[key] = given.get(key);
    if (!COLUMNS.some((column) => column.key === state.sort)) state.sort = START.sort;
    if (state.order !== "descending") state.order = "ascending";
  }

  function write() {
    const kept = Object.entries(state).filter(([key, value]) => value !== START[key]);
    const fragment = new URLSearchParams(kept).toString();
    try {
      history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
    } catch {
      // a page without a history (in some viewers) keeps its state for as long as it is open
    }
  }

  function change(changes) {
    Object.assign(state, changes);
    write();
    draw();
  }

  const opened = () => new Set(state.open.split(",").filter(Boolean).map(Number));

  // ---- filters ----

  const form = document.getElementById("filters");
  const tileOrder = (a, b) => {
    const [x, y] = [a, b].map((each) => each.split("×").map(Number));
    return x[0] - y[0] || x[1] - y[1] || x[2] - y[2] || 0;
  };
  const archOrder = (a, b) => Number(a.slice(2)) - Number(b.slice(2));
  const orders = { gpu: (a, b) => Number(a) - Number(b), arch: archOrder, tile: tileOrder, verdict: (a, b) => ORDER.indexOf(a) - ORDER.indexOf(b) };
  const plain = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  const runs = (row, gpu) => row.limits.some(([, names]) => names.includes(gpu));

  function controls() {
    for (const [key, label] of FILTERS) {
      const counts = new Map();
      if (key === "gpu") for (const [name] of facts.gpus) counts.set(text(name), rows.filter((row) => runs(row, text(name))).length);
      else if (key === "verdict") for (const row of rows) for (const value of row.verdicts) counts.set(value, 0);
      else for (const row of rows) if (row[key]) counts.set(row[key], (counts.get(row[key]) || 0) + 1);
      const values = [...counts.keys()].sort(orders[key] || plain);
      const select = element("select", { id: `filter-${key}`, name: key },
        element("option", { value: "" }, "all"),
        values.map((value) => element("option", { value }, `${key === "verdict" ? VERDICTS[value] : value}${key === "verdict" ? "" : ` (${counts.get(value).toLocaleString("en-US")})`}`)));
      select.addEventListener("change", () => change({ [key]: select.value }));
      form.append(element("label", {}, element("span", {}, label), select));
    }
    const search = element("input", { id: "filter-q", name: "q", type: "search", autocomplete: "off", spellcheck: "false", placeholder: "words, e.g. 256x128 CUT101" });
    search.addEventListener("input", () => change({ q: search.value }));
    form.append(element("label", { class: "wide" }, element("span", {}, "Text"), search));
    form.append(element("button", { type: "button", id: "reset", onclick: () => { turned.clear(); change({ ...START }); } }, "Reset"));
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  function selected() {
    const words = folded(state.q).split(/\s+/).filter(Boolean);
    for (const row of rows) judge(row, state.gpu);
    const matches = (row, key) => !state[key] || (key === "gpu" ? runs(row, state.gpu) : row[key] === state[key]);
    return rows.filter((row) => FILTERS.every(([key]) => matches(row, key)) && words.every((word) => row.words.includes(word)));
  }

  // ---- the table ----

  const COLUMNS = [
    { key: "verdict", label: "Verdict", value: (row) => ORDER.indexOf(row.verdict) },
    { key: "tile", label: "CTA tile", value: (row) => (row.known ? row.known.cta_tile[0] * 1e8 + row.known.cta_tile[1] * 1e4 + row.known.cta_tile[2] : null) },
    { key: "fusion", label: "Fusion", value: (row) => row.fusion || null },
    { key: "swap", label: "SwapAB", value: (row) => row.swap || null },
    { key: "cluster", label: "Cluster", value: (row) => row.cluster || null },
    { key: "stages", label: "Stages", value: (row) => row.stages, number: true },
    { key: "total", label: "Shared memory", value: (row) => row.total, number: true },
    { key: "headroom", label: "Headroom", value: (row) => row.headroom },
    { key: "findings", label: "Findings", value: (row) => row.found.length || null },
  ];

  function compare(a, b) {
    const column = COLUMNS.find((each) => each.key === state.sort);
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a.index - b.index; // unknown ones last, either way
    return (state.order === "ascending" ? 1 : -1) * plain(x, y) || a.index - b.index;
  }

  function heads() {
    const row = element("tr");
    for (const column of COLUMNS) {
      const active = state.sort === column.key;
      const order = active && state.order === "ascending" ? "descending" : "ascending";
      row.append(element("th", { scope: "col", "aria-sort": active ? state.order : null, class: column.number ? "number" : null },
        element("button", { type: "button", "data-sort": column.key, onclick: () => change({ sort: column.key, order }) }, column.label,
          element("span", { class: "arrow", "aria-hidden": "true" }, active ? (state.order === "ascending" ? "▲" : "▼") : "↕"))));
    }
    return row;
  }

  const WIDTH = 120; // of a bar, in its own units; the limit stands at LIMIT
  const LIMIT = 106;

  function bar(total, limit) {
    const svg = element("svg", { class: "bar", viewBox: `0 0 ${WIDTH} 14`, width: WIDTH, height: 14, "aria-hidden": "true", focusable: "false" });
    svg.append(element("rect", { class: "track", x: 0, y: 2, width: LIMIT, height: 10 }));
    const end = Math.min(WIDTH, (total / limit) * LIMIT);
    svg.append(element("rect", { class: "used", x: 0, y: 2, width: Math.min(end, LIMIT), height: 10 }));
    if (total > limit) svg.append(element("rect", { class: "excess", x: LIMIT, y: 2, width: Math.max(4, end - LIMIT), height: 10 }));
    svg.append(element("line", { class: "limit", x1: LIMIT, x2: LIMIT, y1: 0, y2: 14 }));
    return svg;
  }

  function room(total, limit) {
    if (total > limit) return `${bytes(total - limit)} over`;
    return total === limit ? "0 B left" : `${bytes(limit - total)} left`;
  }

  function headroom(row) {
    if (row.headroom === null) return ["–"];
    return [bar(row.total, row.limit), element("span", { class: "room" }, room(row.total, row.limit))];
  }

  function badges(found) {
    return found.map((number) => {
      const finding = facts.findings[number];
      const suppressed = finding.suppressed >= 0;
      return element("span", { class: `badge ${suppressed ? "suppressed" : text(finding.severity)}`, title: text(finding.message) },
        `${text(finding.rule)} ${suppressed ? "suppressed" : text(finding.severity)}`);
    });
  }

  function line(row, open) {
    const shown = open.has(row.index);
    const button = element("button", { type: "button", class: "open", id: `row-${row.index}`, "aria-expanded": String(shown), "aria-controls": shown ? `detail-${row.index}` : null, onclick: () => toggle(row.index) },
      mark(row.verdict), VERDICTS[row.verdict], element("span", { class: "unseen" }, `, ${row.subject || row.name}: details`));
    return element("tr", { class: `row ${row.verdict}`, "data-row": row.index },
      element("td", {}, button), element("td", {}, row.tile || "–"), element("td", {}, row.fusion || "–"), element("td", {}, row.swap || "–"),
      element("td", {}, row.cluster || "–"), element("td", { class: "number" }, row.stages ?? "–"),
      element("td", { class: "number" }, row.total === null ? "–" : bytes(row.total)), element("td", {}, headroom(row)), element("td", {}, badges(row.found)));
  }

  function toggle(index) {
    const open = opened();
    if (!open.delete(index)) open.add(index);
    change({ open: [...open].join(",") });
    document.getElementById(`row-${index}`)?.focus();
  }

  function draw() {
    const table = document.getElementById("table");
    for (const [key] of FILTERS) form.elements[key].value = state[key];
    if (form.elements.q.value !== state.q) form.elements.q.value = state.q;
    const focused = document.activeElement?.dataset?.sort;
    table.tHead.replaceChildren(heads());
    if (focused) table.tHead.querySelector(`[data-sort="${focused}"]`).focus();
    const shown = selected().sort(compare);
    const groups = new Map();
    for (const row of shown) groups.has(row.group) ? groups.get(row.group).push(row) : groups.set(row.group, [row]);
    const open = opened();
    const bodies = [...groups].map(([name, members]) => body(name, members, shown.length <= 60, open));
    for (const old of [...table.tBodies]) old.remove();
    table.append(...bodies);
    document.getElementById("shown").textContent = `${shown.length.toLocaleString("en-US")} of ${counted(rows.length, "instantiation")} in ${counted(groups.size, "group")}`;
    heat(shown);
  }

  function body(name, members, few, open) {
    const risky = members.some((row) => row.verdict === "over" || open.has(row.index));
    const expanded = turned.get(name) ?? (few || risky);
    const made = element("tbody");
    const first = members[0];
    const title = first.known ? [element("b", {}, first.tile), ` ${first.types} `, element("span", { class: "arch" }, first.arch)] : [element("b", {}, name)];
    const button = element("button", { type: "button", class: "group", "aria-expanded": String(expanded) }, title);
    button.addEventListener("click", () => {
      const now = button.getAttribute("aria-expanded") !== "true";
      turned.set(name, now);
      const fresh = body(name, members, few, opened());
      made.replaceWith(fresh);
      fresh.querySelector("button.group").focus();
    });
    const sized = members.filter((row) => row.headroom !== null);
    const worst = sized.length ? sized.reduce((a, b) => (b.headroom < a.headroom ? b : a)) : null;
    const verdicts = ORDER.filter((verdict) => members.some((row) => row.verdict === verdict)).map((verdict) =>
      element("span", { class: "tally" }, mark(verdict), `${members.filter((row) => row.verdict === verdict).length} ${VERDICTS[verdict]}`));
    made.append(element("tr", { class: "head" }, element("th", { scope: "rowgroup", colspan: 5 }, button), element("td", { colspan: 2 }, verdicts),
      element("td", {}, worst ? headroom(worst) : ""), element("td", {})));
    if (expanded) {
      for (const row of members) {
        made.append(line(row, open));
        if (open.has(row.index)) made.append(element("tr", { class: "detail", id: `detail-${row.index}` }, element("td", { colspan: COLUMNS.length }, detail(row))));
      }
    }
    return made;
  }

  // ---- the detail of one instantiation ----

  const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names[0]);
  const pairs = (list) => element("dl", {}, list.filter((pair) => pair).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));

  function detail(row) {
    const parts = [element("h3", {}, row.subject || row.name)];
    const sizes = row.sizes;
    if (row.unknown) parts.push(element("p", {}, `Not sized: ${row.unknown}`));
    if (sizes && sizes.refused !== null) parts.push(element("p", {}, `CUTLASS refuses it: ${text(sizes.refused)}`));
    if (sizes && sizes.fails_in_nvcc !== null) parts.push(element("p", {}, `nvcc refuses it: ${text(sizes.fails_in_nvcc)}`));
    if (row.total !== null) {
      const regions = sizes.regions.map(([name, kind, part, offset, size]) => ({ name: text(name), kind: text(kind), part: text(part), offset, size }));
      parts.push(element("p", {}, `${bytes(row.total)}: `, row.limits.map(([limit, names], at) => `${at ? "; " : ""}${room(row.total, limit)} ${row.total > limit ? "the limit" : "under the limit"} of ${bytes(limit)} on ${listed(names)}`)));
      if (regions.length) parts.push(map(row, regions));
      parts.push(element("div", { class: "columns" }, element("div", {}, asked(row), rule(row, regions)), regions.length ? list(row, regions) : null));
    } else parts.push(asked(row));
    for (const number of row.found) parts.push(finding(facts.findings[number]));
    return element("div", { class: "card" }, parts);
  }

  function finding(each) {
    const fits = each.fixes.map((number) => element("li", {}, text(number)));
    return element("div", { class: "finding" }, element("p", {}, badges([facts.findings.indexOf(each)]), " ", text(each.message)),
      text(each.detail) ? element("p", { class: "why" }, text(each.detail)) : null,
      each.suppressed >= 0 ? element("p", {}, `Suppressed, ${text(each.suppressed)}`) : null,
      fits.length ? [element("p", {}, "What fits:"), element("ul", {}, fits)] : null);
  }

  function asked(row) {
    const { known, sizes } = row;
    const budget = sizes && sizes.budget;
    return pairs([
      ["written at", place(row.file, row.line, row.column)],
      ...row.decisions.map(([file, at, column, message]) => [text(message), place(file, at, column)]),
      known && ["stage-count type", element("code", {}, text(known.stage_count))],
      known && ["kernel schedule", element("code", {}, text(known.kernel_schedule))],
      known && known.resolved_schedule !== known.kernel_schedule &&
        ["which the builder takes as", element("code", {}, text(known.resolved_schedule || "not known"))],
      known && ["epilogue schedule", element("code", {}, text(known.epilogue_schedule))],
      known && ["MMA tile, cluster", `${known.mma_tile.join("×")}, ${row.cluster}`],
      known && ["elements", `A ${text(known.element_a)}, B ${text(known.element_b)}${known.element_scale === null ? "" : `, scale ${text(known.element_scale)}`}, C ${text(known.element_c)}, D ${text(known.element_d)}`],
      sizes && sizes.epilogue_tile && ["epilogue tile", sizes.epilogue_tile.join("×")],
      sizes && sizes.threads && ["threads", String(sizes.threads)],
      budget && budget.carveout && ["how the stages come about", `(${bytes(budget.capacity)} capacity − ${bytes(budget.reserved)} reserved − ${bytes(budget.carveout)} carveout) ÷ ${bytes(budget.stage)} a stage = ${sizes.left < 0 ? `less than ${counted(budget.stages, "stage")}; the builder takes them all the same, ${bytes(-sizes.left)} too much` : `${counted(budget.stages, "stage")}, ${bytes(sizes.left)} left`}`],
      row.compared && ["clang engine", row.compared.total === null ? "refuses it" : bytes(row.compared.total)],
      row.guard && ["compiled only if", element("code", {}, row.guard)],
      row.args.length && ["arguments", element("code", {}, row.args.map(([name, value]) => `${text(name)}=${text(value)}`).join(", "))],
    ]);
  }

  // The rule of thumb beside the exact figure: where the difference comes from, part by part.
  function rule(row, regions) {
    const { known, sizes } = row;
    if (!known || sizes.envelope === null || !regions.length) return null;
    const part = (name) => regions.filter((each) => each.part === name).reduce((sum, each) => sum + each.size, 0);
    const [mainloop, epilogue, overhead] = ["mainloop", "epilogue", "overhead"].map(part);
    const stage = sizes.envelope - known.output_tile;
    const lines = [
      ["A, B, scale factors", `${bytes(stage)}: one stage`, `${bytes(mainloop)}: ${counted(sizes.stages, "stage")}`, mainloop - stage],
      ["epilogue", `${bytes(known.output_tile)}: the whole output tile`, `${bytes(epilogue)}: ${!epilogue ? "straight from registers" : sizes.epilogue_tile ? `staged in tiles of ${sizes.epilogue_tile.join("×")}` : "as laid out"}`, epilogue - known.output_tile],
      ["barriers, tensor maps, padding", "not counted", bytes(overhead), overhead],
      ["in all", bytes(sizes.envelope), bytes(row.total), row.total - sizes.envelope],
    ];
    const signed = (number) => (number < 0 ? `−${bytes(-number)}` : `+${bytes(number)}`);
    const misled = row.limit !== null && sizes.envelope > row.limit !== row.total > row.limit;
    return element("div", {}, element("table", { class: "small" }, element("caption", {}, "The rule of thumb (envelope) beside the exact figure"),
      element("thead", {}, element("tr", {}, ["", "Rule of thumb", "Exact", "Difference"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, lines.map(([name, thumb, exact, difference]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, thumb), element("td", {}, exact), element("td", { class: "number" }, signed(difference)))))),
      misled ? element("p", {}, `Here the rule of thumb misleads: it says that the tile ${sizes.envelope > row.limit ? "does not fit, and it fits" : "fits, and it does not"}.`) : null);
  }

  function list(row, regions) {
    return element("table", { class: "small regions" }, element("caption", {}, "Regions of SharedStorage"),
      element("thead", {}, element("tr", {}, element("th", { scope: "col", class: "number" }, "Offset"), element("th", { scope: "col", class: "number" }, "Size"), element("th", { scope: "col" }, "What"))),
      element("tbody", {}, regions.map((each) => element("tr", { class: each.kind === "padding" ? "hole" : null },
        element("td", { class: "number" }, each.offset.toLocaleString("en-US")), element("td", { class: "number" }, each.size.toLocaleString("en-US")),
        element("td", {}, element("span", { class: `swatch ${kind(each.kind)}`, "aria-hidden": "true" }), each.name, staged(each, row.stages) ? ` (${counted(row.stages, "stage")} of ${bytes(each.size / row.stages)})` : "")))));
  }

  const kind = (name) => `k-${name in LEGEND ? name.replace("/", "") : "other"}`;
  const staged = (region, stages) => region.part === "mainloop" && stages > 1 && region.size % stages === 0;

  // Two strips: all of SharedStorage against the limit, and below it, magnified, what is too small to be seen there.
  function map(row, regions) {
    const width = 1000;
    const scale = (width - 10) / Math.max(row.total, row.limit ?? 0, row.sizes.envelope ?? 0);
    const svg = element("svg", { class: "map", viewBox: `0 0 ${width} 158`, role: "img" });
    const said = regions.map((each) => `${each.name} ${bytes(each.size)}`).join(", ");
    svg.append(element("title", {}, `Shared memory of ${row.subject}: ${said}`));
    strip(svg, regions, 22, 44, (offset) => offset * scale, row);
    if (row.limit !== null) {
      const x = row.limit * scale;
      if (row.total > row.limit) svg.append(element("rect", { class: "excess", x, y: 20, width: Math.max(3, (row.total - row.limit) * scale), height: 48 }));
      svg.append(element("line", { class: "limit", x1: x, x2: x, y1: 14, y2: 88 }));
      svg.append(element("text", { class: "limit-label", x: x - 4, y: 11, "text-anchor": "end" }, `limit ${bytes(row.limit)}: ${room(row.total, row.limit)}`));
    }
    svg.append(element("text", { x: 0, y: 11 }, `exact: ${bytes(row.total)}`));
    if (row.sizes.envelope !== null) {
      const stage = row.sizes.envelope - row.known.output_tile;
      svg.append(element("rect", { class: "thumb", x: 0, y: 72, width: stage * scale, height: 12 }), element("rect", { class: "thumb", x: stage * scale, y: 72, width: row.known.output_tile * scale, height: 12 }));
      svg.append(element("text", { x: 2, y: 97 }, `rule of thumb: ${bytes(row.sizes.envelope)} = one stage + the whole output tile`));
    }
    const fine = smallest(regions);
    if (fine.length) {
      const [start, end] = [fine[0].offset, fine[fine.length - 1].offset + fine[fine.length - 1].size];
      strip(svg, fine, 122, 26, (offset) => ((offset - start) / (end - start)) * (width - 10), row);
      svg.append(element("text", { x: 0, y: 117 }, `magnified: offsets ${start.toLocaleString("en-US")} to ${end.toLocaleString("en-US")}, ${bytes(end - start)}`));
    }
    return element("figure", {}, svg, element("figcaption", {}, [...new Set(regions.map((each) => each.kind))].map((name) =>
      element("span", { class: "key" }, element("span", { class: `swatch ${kind(name)}`, "aria-hidden": "true" }), LEGEND[name] || name))));
  }

  // The longest run of neighbours that are neither operands nor the epilogue's tiles.
  function smallest(regions) {
    let [run, most] = [[], []];
    for (const each of regions) {
      run = each.part === "overhead" ? [...run, each] : [];
      if (run.length > most.length) most = run;
    }
    return most;
  }

  function strip(svg, regions, y, height, at, row) {
    for (const each of regions) {
      const x = at(each.offset);
      const w = at(each.offset + each.size) - x;
      const drawn = element("g", {}, element("title", {}, `${each.name}: ${bytes(each.size)} at ${each.offset.toLocaleString("en-US")}`),
        element("rect", { class: `region ${kind(each.kind)}`, x, y, width: Math.max(w, 0.5), height }));
      if (staged(each, row.stages))
        for (let stage = 1; stage < row.stages; stage += 1) drawn.append(element("line", { class: "stage", x1: x + (w * stage) / row.stages, x2: x + (w * stage) / row.stages, y1: y, y2: y + height }));
      const label = each.kind === "padding" ? "hole" : (LEGEND[each.kind] || each.name) + (staged(each, row.stages) ? ` ×${row.stages}` : "");
      if (w > 7.5 * label.length + 6) drawn.append(element("text", { class: "label", x: x + w / 2, y: y + height / 2 + 4, "text-anchor": "middle" }, label));
      svg.append(drawn);
    }
  }

  // ---- heat maps ----

  function heat(shown) {
    const holder = document.getElementById("maps");
    const archs = [...new Set(shown.filter((row) => row.known).map((row) => row.arch))];
    archs.sort(archOrder);
    holder.replaceChildren(...archs.map((arch) => {
      const members = shown.filter((row) => row.arch === arch);
      const over = members.filter((row) => row.verdict === "over").length;
      const made = element("details", {}, element("summary", {}, element("b", {}, arch), ` ${counted(members.length, "instantiation")}${over ? `, ${over} will not launch` : ""}`));
      const fill = () => { if (made.open && !made.querySelector("table")) made.append(element("div", { class: "scroll" }, grid(arch, members))); };
      made.addEventListener("toggle", fill);
      made.open = over > 0 || archs.length === 1;
      fill();
      return made;
    }));
  }

  function grid(arch, members) {
    const cells = new Map();
    const columns = new Map();
    for (const row of members) {
      const config = [row.types, row.fusion, row.swap].join("|");
      columns.set(config, row);
      const key = `${row.tile}|${config}`;
      cells.has(key) ? cells.get(key).push(row) : cells.set(key, [row]);
    }
    const names = [...columns.keys()].sort();
    const types = [...new Set(names.map((name) => name.split("|")[0]))];
    const tiles = [...new Set(members.map((row) => row.tile))].sort(tileOrder);
    return element("table", { class: "heat" }, element("caption", { class: "unseen" }, `Headroom on ${arch}, CTA tiles by configurations`),
      element("thead", {},
        element("tr", {}, element("th", { scope: "col", rowspan: 2 }, "CTA tile"), types.map((type) => element("th", { scope: "colgroup", colspan: names.filter((name) => name.split("|")[0] === type).length }, type))),
        element("tr", {}, names.map((name) => { const [, fusion, swap] = name.split("|"); return element("th", { scope: "col" }, fusion, swap === "true" ? element("br") : null, swap === "true" ? "swap" : null); }))),
      element("tbody", {}, tiles.map((tile) => element("tr", {}, element("th", { scope: "row" }, tile), names.map((name) => cell(cells.get(`${tile}|${name}`)))))));
  }

  function cell(members) {
    if (!members) return element("td", { class: "none" });
    const sized = members.filter((row) => row.headroom !== null);
    const row = sized.length ? sized.reduce((a, b) => (b.headroom < a.headroom ? b : a)) : members[0];
    const left = row.headroom === null ? null : row.headroom / 1024;
    const share = row.headroom === null ? null : row.headroom / row.limit;
    const tone = share === null ? row.verdict : share < 0 ? "over" : share === 0 ? "limit" : share < 0.02 ? "h1" : share < 0.05 ? "h2" : share < 0.15 ? "h3" : "h4";
    const shown = left === null ? "–" : (Math.abs(left) < 9.95 && left !== 0 ? left.toFixed(1) : String(Math.round(left))).replace("-", "−");
    const label = `${row.subject}: ${row.headroom === null ? VERDICTS[row.verdict] : room(row.total, row.limit)}; ${counted(members.length, "instantiation")}`;
    return element("td", { class: `heat-${tone}` }, element("button", { type: "button", title: label, "aria-label": label,
      onclick: () => { change({ ...START, gpu: state.gpu, arch: row.arch, tile: row.tile, types: row.types, fusion: row.fusion, swap: row.swap }); go("instantiations"); } }, shown));
  }

  function go(id) {
    const section = document.getElementById(id);
    section.scrollIntoView();
    section.setAttribute("tabindex", "-1");
    section.focus({ preventScroll: true });
  }

  // ---- start ----

  for (const each of document.querySelectorAll(".app")) each.hidden = false;
  for (const each of document.querySelectorAll("[data-goto]")) each.addEventListener("click", (event) => { event.preventDefault(); go(each.dataset.goto); });
  controls();
  read();
  draw();
  window.addEventListener("hashchange", () => { read(); draw(); });
})();
