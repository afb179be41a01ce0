// Unpacks Plotly and the figures, draws each figure once, and saves it as SVG, PNG or CSV. Colours of text and axes
// come from the style sheet, so a theme redraws nothing.
(async () => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);

  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = $("theme");
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
  $("print").addEventListener("click", () => print());

  // A link into folded evidence opens it.
  const open = () => {
    const target = location.hash && document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`);
    if (!target) return;
    for (let one = target.querySelector("details.evidence") ?? target; one; one = one.parentElement) {
      if (one.matches("details")) one.open = true;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  // Tables that are wider than their place say so.
  const overflow = new ResizeObserver((seen) => {
    for (const { target } of seen) target.classList.toggle("more", target.scrollWidth > target.clientWidth + 2);
  });
  for (const one of document.querySelectorAll(".scroll")) overflow.observe(one);

  const save = (content, file, type) => {
    const link = document.createElement("a");
    link.download = file;
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
  const decoded = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  // A text that a spreadsheet would take for a formula begins with an apostrophe.
  const harmless = (text) => (/^[=+\-@\t\r]/.test(text) && isNaN(text.replace(/ ?%$/, "")) ? `'${text}` : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const field = (text) => quoted(harmless(text));
  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
  // A cell as other programs read it: no thousands separators, no dash for what was not measured.
  const cell = (text) => {
    const plain = text.replaceAll("\u00a0", " ").replaceAll("−", "-").trim();
    return plain === "–" ? "" : /^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(plain) ? plain.replaceAll(",", "") : plain;
  };
  const ofTable = (table) => [...table.rows].map((row) => [...row.cells].map((one) => cell(one.textContent)));
  // Lines over time: a row for each moment of a run, a column for each plot.
  const ofLines = (figure) => {
    const rows = new Map();
    for (const { name, x, y, customdata = y, yaxis = "y" } of figure.data) {
      const at = (Number(yaxis.slice(1)) || 1) - 1;
      x.forEach((moment, i) => {
        const key = JSON.stringify([name, moment]);
        if (!rows.has(key)) rows.set(key, [name, `${moment}`, ...figure.columns.map(() => "")]);
        if (y[i] !== null) rows.get(key)[at + 2] = `${customdata[i]}`;
      });
    }
    return [["run", "since measuring began", ...figure.columns], ...rows.values()];
  };

  // The picture above all: drawn already, it only has to be saved.
  const drawnAs = async (svg, format, file) => {
    const { width, height } = svg.viewBox.baseVal;
    const copy = svg.cloneNode(true);
    copy.insertAdjacentHTML("afterbegin", `<rect width="${width}" height="${height}" fill="#fff"/>`);
    const text = new XMLSerializer().serializeToString(copy);
    if (format === "svg") return save(text, file, "image/svg+xml");
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, file, "image/png"));
  };

  let figures = {};
  let template = {};
  addEventListener("click", async ({ target }) => {
    const format = target.dataset?.save;
    if (!format) return;
    const of = target.closest("figure");
    const file = `${of.id.replace("figure-", "")}.${format}`;
    const figure = figures[`chart-${of.id.replace("figure-", "")}`];
    if (format === "csv") {
      const rows = figure?.columns.length ? ofLines(figure) : ofTable(of.querySelector("table"));
      return save("\ufeff" + csv(rows), file, "text/csv");
    }
    if (!figure) return drawnAs(of.querySelector("svg.picture.wide"), format, file);
    // The title and the key stand beside the chart in the page; a saved chart needs them within.
    const wide = of.matches(".wide");
    const key = figure.key.map(([text, colour]) => `<span style="color:${colour}">■</span> ${text}`);
    const lines = [];
    for (let at = 0; at < key.length; at += wide ? 8 : 4) lines.push(key.slice(at, at + (wide ? 8 : 4)).join("  "));
    const size = { width: wide ? 1200 : 640, height: figure.layout.height + 70 + 16 * lines.length };
    const top = (figure.layout.margin?.t ?? template.layout.margin.t) + 44 + 16 * lines.length;
    const title = {
      text: `<b>${figure.title}</b>${lines.map((one) => `<br><span style="font-size:12px">${one}</span>`).join("")}`,
      ...{ x: 0.01, xanchor: "left", y: 1 - 18 / size.height, yanchor: "top", yref: "container", font: { size: 16 } },
    };
    const layout = {
      ...figure.layout,
      ...{ template, title, paper_bgcolor: "#fff", margin: { ...template.layout.margin, ...figure.layout.margin, t: top } },
    };
    const url = await Plotly.toImage({ data: figure.data, layout: { ...layout, ...size } }, { format, ...size, scale: 2 });
    const drawing = url.slice(url.indexOf(",") + 1);
    if (format === "svg") save(decodeURIComponent(drawing), file, "image/svg+xml");
    else save(decoded(drawing), file, "image/png");
  });

  if (typeof DecompressionStream === "undefined") {
    for (const chart of document.querySelectorAll(".chart")) {
      chart.textContent = "This browser cannot unpack the charts: open the report in one of 2023 or later.";
    }
    return;
  }
  const unpack = (id) => {
    return new Response(new Blob([decoded($(id).textContent)]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  const [plotly, data] = await Promise.all([unpack("plotly"), unpack("figures")]);
  ({ figures, template } = JSON.parse(data));
  globalThis.stallmark = { figures };
  const script = document.createElement("script");
  script.textContent = plotly;
  document.head.append(script);

  const config = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
  // With a view box a chart scales as a drawing wherever it cannot be drawn again.
  const scalable = (chart) => {
    const { width, height } = chart._fullLayout;
    for (const svg of chart.querySelectorAll("svg.main-svg")) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.style.setProperty("--ratio", width / height);
  };
  const draw = (chart) => {
    const { data, layout } = figures[chart.id];
    Plotly.newPlot(chart, data, { ...layout, template }, config).then(() => {
      scalable(chart);
      chart.on("plotly_afterplot", () => scalable(chart));
    });
  };
  const charts = Object.keys(figures).map($);
  const hidden = new Set(charts.filter((chart) => chart.closest("details:not([open])")));
  for (const chart of charts) if (!hidden.has(chart)) draw(chart);
  const drawOpened = () => {
    for (const chart of hidden) {
      if (chart.closest("details:not([open])")) continue;
      hidden.delete(chart);
      draw(chart);
    }
  };
  document.addEventListener("toggle", drawOpened, true);
  root.dataset.drawn = "";

  // On paper charts are drawn a little wider than the place they get there (A4: 690 and 335), which sets their
  // text like the text around them; where a browser does not tell that it prints, the view box scales them.
  const paper = { wide: 760, half: 420, flatter: 0.75 };
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:is(.evidence, .printed):not([open])")];
    for (const one of folded) one.open = true;
    drawOpened();
    for (const chart of charts.filter((one) => !hidden.has(one))) {
      const half = chart.closest(".grid") !== null;
      const height = figures[chart.id].layout.height * (chart.id.startsWith("chart-time") ? paper.flatter : 1);
      Plotly.relayout(chart, { width: half ? paper.half : paper.wide, height, autosize: false });
    }
  });
  addEventListener("afterprint", () => {
    for (const chart of charts.filter((one) => !hidden.has(one))) {
      Plotly.relayout(chart, { width: null, height: figures[chart.id].layout.height, autosize: true });
    }
    for (const one of folded) one.open = false;
  });
})();
