"use strict";
// Polls /state once a second and draws the runs over each other, each from the second at which its measuring began.
const EVERY_MS = 1000, LIMIT_MS = 10000, WIDE = 820;
const at = id => document.getElementById(id);
const lines = new Map();    // of runs that have ended, by number
const chosen = new Map();   // whether a run is drawn, where somebody said so
let last = null, over = false, drawing = false;

async function ask(path, options = {}) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(LIMIT_MS), ...options });
  if (!answer.ok) throw new Error(answer.status);
  return answer;
}

async function poll() {
  if (over) return;
  try {
    const state = await (await ask("state")).json();
    for (const run of state.runs) {
      if (run.live) lines.delete(run.number);
      else if (run.drawn && !lines.has(run.number)) lines.set(run.number, await (await ask(`lines/${run.number}`)).json());
    }
    if (over) return;
    last = state;
  } catch (error) {
    if (over) return;
    console.warn(error);
    lost();
    setTimeout(poll, EVERY_MS);
    return;
  }
  show(last);
  over = last.final;
  if (!over) setTimeout(poll, EVERY_MS);
}

// The end is told at once: a page in the background asks once a minute only, and there would be nobody to answer.
const ending = new EventSource("ended");
ending.addEventListener("message", event => {
  ending.close();
  over = true;
  last = JSON.parse(event.data);
  for (const [number, own] of Object.entries(last.ended)) lines.set(Number(number), own);
  show(last);
});

function lost() {
  document.body.dataset.state = "lost";
  at("badge").textContent = "not live";
  at("lost").hidden = false;
  if (at("stop")) at("stop").hidden = true;
}

function show(state) {
  document.body.dataset.state = state.state;
  at("badge").textContent = state.badge;
  at("lost").hidden = true;
  at("said").hidden = !state.said;
  at("said").textContent = state.said || "";
  at("emulated").hidden = !state.emulated;
  at("place").textContent = state.place || "";
  const [phase, bar, note] = at("phase").children;
  phase.textContent = [state.phase, state.step].filter(Boolean).join(", ");
  bar.hidden = state.progress === null;
  bar.value = state.progress ?? 0;
  note.textContent = state.note;
  at("left").textContent = state.left || "";
  if (at("stop")) at("stop").hidden = ["complete", "ended"].includes(state.state);
  rows(at("lately"), state.lately, one => make("div", {}, make("dt", {}, one.title),
    make("dd", { className: one.bad ? "bad" : "" }, one.value), make("dd", { className: "unit" }, one.unit)));
  rows(at("runs").tBodies[0], state.runs, run => row(run, state));
  rows(at("transactions").tBodies[0], state.transactions, one =>
    make("tr", {}, ...one.map((text, place) => make("td", { className: place ? "number" : "word" }, text))));
  at("transactions-section").hidden = !state.transactions.length;
  draw(state);
}

function make(name, properties, ...inside) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...inside);
  return element;
}

function rows(parent, values, build) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.name : null;
  parent.replaceChildren(...values.map(build));
  if (focused) parent.querySelector(`[name="${focused}"]`)?.focus();
}

function row(run, state) {
  const box = make("input", { type: "checkbox", name: `run${run.number}`, checked: isDrawn(run, state), disabled: !run.drawn });
  box.setAttribute("aria-label", run.name);
  box.addEventListener("change", () => { chosen.set(run.number, box.checked); draw(last); });
  const name = make("td", { className: "word" }, run.name + " ");
  if (run.emulated) name.append(emulated());
  if (run.cut) name.append(make("span", { className: "flag serious" }, " " + run.cut));
  const classes = [run.present ? "present" : "", run.begun ? "" : "planned"].join(" ");
  return make("tr", { className: classes }, make("td", { className: "word" }, box, swatch(run)), name,
    ...run.figures.map(text => make("td", { className: "number" }, text)));
}

const emulated = () => make("span", { className: "emulated" }, "EMULATED");

function swatch(run) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({ width: 22, height: 8, class: "swatch" })) svg.setAttribute(name, value);
  const dashes = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3", longdashdot: "9 2 2 2" };
  const look = { x1: 0, x2: 22, y1: 4, y2: 4, stroke: run.colour, "stroke-width": 3, "stroke-dasharray": dashes[run.dash] };
  for (const [name, value] of Object.entries(look)) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

// Without a choice: the present run, and of every other variant the run that was made last.
function isDrawn(run, state) {
  if (chosen.has(run.number)) return chosen.get(run.number);
  if (run.present) return true;
  const present = state.runs.find(one => one.present);
  const same = state.runs.filter(one => one.drawn && one.variant === run.variant);
  return run.drawn && same.at(-1) === run && run.variant !== present?.variant;
}

const plain = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function draw(state) {
  const drawn = state.runs.filter(run => run.drawn && isDrawn(run, state) && of(run, state));
  at("waiting").hidden = drawn.length > 0 || ["complete", "ended"].includes(state.state);
  at("drawn").hidden = at("key").hidden = at("charts").hidden = !drawn.length;
  if (!drawn.length || drawing || document.hidden) return;
  const wide = at("charts").clientWidth >= WIDE, columns = wide ? 2 : 1;
  const longest = Math.max(...drawn.map(run => Math.abs(of(run, state).seconds.at(-1) ?? 0)));
  const [divisor, unit] = longest > 7200 ? [3600, "hours"] : longest > 300 ? [60, "minutes"] : [1, "seconds"];
  const count = state.charts.length, deep = Math.ceil(count / columns);
  const height = deep * (wide ? 165 : 140) + 60, gap = 44 / height, tall = (1 - gap * deep) / deep;
  const traces = [], layout = {
    height, margin: { l: 48, r: 12, t: 8, b: 42 }, showlegend: false, hovermode: "x unified", dragmode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", annotations: [], shapes: [], uirevision: 1,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12 },
  };
  const now = drawn.find(run => run.present), mine = now && of(now, state);
  state.charts.forEach((chart, place) => {
    const key = place ? place + 1 : "", level = Math.floor(place / columns), column = place % columns;
    const top = 1 - level * (tall + gap) - gap, left = column * .52, right = columns === 1 ? 1 : left + .48;
    const lowest = place + columns >= count;
    layout[`xaxis${key}`] = {
      domain: [left, right], anchor: `y${key}`, showgrid: false, zeroline: true, fixedrange: true, showticklabels: lowest,
      ...(place ? { matches: "x" } : {}), ...(lowest ? { title: { text: `${unit} since measuring began`, font: { size: 11 } } } : {}),
    };
    layout[`yaxis${key}`] = {
      domain: [top - tall, top], anchor: `x${key}`, rangemode: chart.line === "hit_share" ? "normal" : "tozero", fixedrange: true, nticks: 5, showgrid: true,
      separatethousands: true, exponentformat: "none", tickformat: chart.line === "hit_share" ? ".0%" : undefined,
    };
    layout.annotations.push({
      xref: "paper", yref: "paper", x: left, y: top, yshift: 3, xanchor: "left", yanchor: "bottom", showarrow: false,
      text: `<b>${plain(chart.title)}</b>, ${plain(chart.unit)}`, font: { size: 12 },
    });
    for (const run of drawn) {
      const own = of(run, state), values = own[chart.line];
      if (!values) continue;
      traces.push({
        x: own.seconds.map(second => second / divisor), y: values, xaxis: `x${key}`, yaxis: `y${key}`, type: "scatter",
        mode: "lines", name: plain(run.name), opacity: run.present ? 1 : .75, connectgaps: false,
        line: { color: run.colour, width: run.present ? 2.2 : 1.2, dash: run.dash },
        hovertemplate: chart.line === "hit_share" ? "%{y:.1%}" : "%{y:,.3~r}",
      });
    }
    const steps = mine || of(drawn.at(-1), state);
    for (const [name, begin, measured] of steps.steps) {
      const place = { xref: `x${key}`, yref: `y${key} domain`, x0: begin / divisor, y0: 0, y1: 1 };
      layout.shapes.push({
        ...place, type: "rect", x1: measured / divisor, line: { width: 0 }, fillcolor: "#888", opacity: .12, layer: "below",
      }, { ...place, type: "line", x1: begin / divisor, line: { width: 1, dash: "dot", color: "#7d8590" } });
      if (!level && steps.steps.length > 1) layout.annotations.push({
        xref: `x${key}`, yref: `y${key} domain`, x: begin / divisor, y: 1, xanchor: "left", yanchor: "top", xshift: 2,
        text: plain(name), showarrow: false, font: { size: 10 },
      });
    }
  });
  if (drawn.some(run => run.emulated)) layout.annotations.push({
    xref: "paper", yref: "paper", x: 1, y: 1, xanchor: "right", yanchor: "top", showarrow: false, 
    text: `<b>${state.stamps[drawn.every(run => run.emulated) ? 0 : 1]}</b>`,
    font: { size: 11 }, bordercolor: "#b0770f", borderpad: 2, yshift: -4,
  });
  at("key").replaceChildren(...drawn.map(run =>
    make("li", {}, swatch(run), `${run.name} `, ...(run.emulated ? [emulated()] : []))));
  const width = Math.max(...drawn.map(run => of(run, state).width));
  at("drawn").textContent = state.method[width > 1 ? 1 : 0].replace("{}", width);
  drawing = true;
  Plotly.react(at("charts"), traces, layout, { displayModeBar: false, responsive: true }).finally(() => { drawing = false; });
}

const of = (run, state) => (run.live ? state.lines : lines.get(run.number));

at("stop")?.addEventListener("click", () => at("sure").showModal());
at("sure").addEventListener("close", async () => {
  if (at("sure").returnValue !== "stop") return;
  const token = document.querySelector("meta[name=stop-token]").content;
  await ask("stop", { method: "POST", headers: { "X-Stallmark-Token": token } }).catch(lost);
});
// Tables that are wider than their place say so.
const overflow = new ResizeObserver(seen => seen.forEach(({ target }) =>
  target.classList.toggle("more", target.scrollWidth > target.clientWidth + 2)));
document.querySelectorAll(".scroll").forEach(one => overflow.observe(one));
addEventListener("resize", () => last && draw(last));
document.addEventListener("visibilitychange", () => last && draw(last));
poll();
