"use strict";
// Makes a page that is already complete answer to the mouse: figures, sorting, CSV. Texts from logs only ever
// become text nodes, and the page's policy allows no script but this one and Vega's.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // --- CSV ---
  const guarded = (text) => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const save = (name, text) => {
    const link = document.createElement("a");
    const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    link.href = url;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  const cell = (td) => (td.dataset.v === undefined ? guarded(td.textContent) : td.dataset.v);
  const rowsCsv = (rows) => {
    const columns = [...new Set(rows.flatMap(Object.keys))];
    const one = (value) => (typeof value === "string" ? guarded(value) : String(value ?? ""));
    const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
    return lines.map((line) => line.map((value) => quoted(one(value))).join(",")).join("\r\n") + "\r\n";
  };
  const tableCsv = (table) =>
    all("tr", table).map((tr) => [...tr.cells].map((td) => quoted(cell(td))).join(",")).join("\r\n") + "\r\n";

  // --- sorting ---
  const sort = (th) => {
    const up = th.getAttribute("aria-sort") !== "ascending";
    const body = th.closest("table").tBodies[0];
    const place = th.cellIndex;
    const key = (tr) => {
      const td = tr.cells[place];
      return td.dataset.v === undefined ? td.textContent : Number(td.dataset.v);
    };
    const empty = (value) => value === "" || value === "–";
    const order = (a, b) => {
      if (empty(a.key) || empty(b.key)) return empty(a.key) - empty(b.key);
      const by = typeof a.key === "number" && typeof b.key === "number"
        ? a.key - b.key
        : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
      return up ? by : -by;
    };
    const rows = [...body.rows].map((tr) => ({ tr, key: key(tr) })).sort(order);
    body.append(...rows.map((row) => row.tr));
    all("th", th.parentNode).forEach((each) => each.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  all("details.table th").forEach((th) => {
    if (!th.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort";
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener("click", () => sort(th));
  });

  // --- tooltips ---
  const tip = document.getElementById("tip");
  const TIMES = new Set("at from until to from_s until_s at_s latency p50 p95 p99 planned late offset seconds mean_s".split(" "));
  TIMES.add("clock ±").add("at least").add("at most");
  const seconds = (text) => {
    const value = Number(String(text).replaceAll(",", "").replace("−", "-"));
    if (text === "" || !Number.isFinite(value)) return text;
    const size = Math.abs(value);
    const [scale, unit] = size >= 1 || size === 0 ? [1, "s"] : size >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
    return Number((value * scale).toPrecision(4)) + " " + unit;
  };
  const tooltip = (handler, event, item, value) => {
    tip.hidden = !value || typeof value !== "object";
    if (tip.hidden) return;
    tip.replaceChildren(...Object.entries(value).filter(([, shown]) => shown !== "" && shown !== "null").map(([name, shown]) => {
      const line = document.createElement("div");
      for (const text of [name.replace(/_s$/, ""), TIMES.has(name) ? seconds(shown) : shown]) {
        const part = document.createElement("span");
        part.textContent = String(text).slice(0, 200);
        line.append(part);
      }
      return line;
    }));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6)) + "px";
    tip.style.top = (event.clientY + height + 22 > innerHeight ? event.clientY - height - 12 : event.clientY + 16) + "px";
  };

  // --- figures that answer ---
  const specOf = (figure) => JSON.parse(figure.querySelector(".spec").textContent);
  const views = new Map(); // live element -> view
  const timed = () => [...views].filter(([live]) => "time" in live.dataset);

  const enliven = async (figure) => {
    const live = figure.querySelector(".live");
    const spec = specOf(figure);
    const still = figure.querySelector(".still");
    const fixed = figure.classList.contains("fixed");
    const time = (spec.params || []).some((param) => param.name === "from_s");
    if (!fixed) spec.width = Math.max(280, figure.clientWidth);
    if (time) for (const layer of spec.layer) if (layer.mark && layer.mark.type !== "text") layer.mark.clip = true;
    if (spec.width < 640) spec.layer = spec.layer.filter((layer) => !layer.layer); // no room for labels of marks
    const mount = document.createElement("div");
    live.replaceChildren(mount);
    live.hidden = false;
    const { view } = await vegaEmbed(mount, spec, { renderer: "svg", actions: false, ast: true, tooltip });
    if (fixed) {
      const svg = live.querySelector("svg");
      svg.style.maxWidth = "none";
      if (figure.clientWidth >= 720) { svg.style.width = "100%"; svg.style.height = "auto"; }
    }
    still.hidden = true;
    figure.classList.add("alive");
    views.set(live, view);
    if (time) follow(live, mount, view);
  };

  // Drag along the time axis to look closer; the same moment is marked in all figures of time.
  const left = (view) => view.origin()[0] + view.padding().left;
  const follow = (live, mount, view) => {
    live.dataset.time = "";
    const cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    cursor.append(document.createElement("span"));
    const band = document.createElement("div");
    band.className = "band";
    band.hidden = true;
    live.append(cursor, band);
    let start = null;
    const at = (event) => event.clientX - live.getBoundingClientRect().left;
    const moment = (x) => view.scale("x").invert(x - left(view));
    mount.addEventListener("pointermove", (event) => {
      point(moment(at(event)));
      if (start === null) return;
      band.hidden = Math.abs(at(event) - start) < 4;
      band.style.left = Math.min(start, at(event)) + "px";
      band.style.width = Math.abs(at(event) - start) + "px";
    });
    mount.addEventListener("pointerleave", () => { point(null); start = null; band.hidden = true; });
    mount.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      start = at(event);
      event.preventDefault();
    });
    mount.addEventListener("pointerup", (event) => {
      if (start !== null && Math.abs(at(event) - start) >= 4) {
        const ends = [moment(start), moment(at(event))].sort((a, b) => a - b);
        zoom(ends[0], ends[1]);
      }
      start = null;
      band.hidden = true;
    });
    mount.addEventListener("dblclick", () => zoom());
    if (zoomed) view.signal("from_s", zoomed[0]).signal("until_s", zoomed[1]).runAsync();
  };
  const point = (moment) => {
    for (const [live, view] of timed()) {
      const cursor = live.querySelector(".cursor");
      const x = moment === null ? -1 : view.scale("x")(moment);
      cursor.hidden = x < 0 || x > view.width();
      cursor.style.left = x + left(view) + "px";
      cursor.firstChild.textContent = moment === null ? "" : Number(moment.toPrecision(5)) + " s";
    }
  };
  let zoomed = null;
  const zoom = (from, until) => {
    zoomed = from === undefined || until <= from ? null : [from, until];
    document.querySelector("[data-do=unzoom]").hidden = !zoomed;
    for (const [live, view] of timed()) {
      const params = specOf(live.closest("figure")).params;
      const whole = params.map((param) => param.value);
      const [first, last] = zoomed || whole;
      view.signal("from_s", first).signal("until_s", last).runAsync();
    }
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (!button) return;
    const figure = button.closest("figure");
    if (button.dataset.do === "unzoom") zoom();
    if (button.dataset.do === "data") save(figure.dataset.name + ".csv", rowsCsv(specOf(figure).datasets.rows));
    if (button.dataset.do === "csv") {
      const details = button.closest("details");
      save(details.dataset.name, tableCsv(details.querySelector("table")));
    }
  });

  if (typeof vegaEmbed === "undefined") return;
  const attempt = (figure) => enliven(figure).catch((error) => {
    console.error(String(error));
    figure.querySelector(".live").hidden = true;
    figure.querySelector(".still").hidden = false;
  });
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      near.unobserve(entry.target);
      attempt(entry.target);
    }
  }, { rootMargin: "400px" });
  all("figure").forEach((figure) => near.observe(figure));
  let width = innerWidth;
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    if (innerWidth !== width) timer = setTimeout(() => {
      width = innerWidth;
      for (const [live, view] of views) {
        view.finalize();
        attempt(live.closest("figure"));
      }
    }, 200);
  });
})();
