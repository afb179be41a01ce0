// Draws the figures once. Colours of text and axes come from the style sheet, so a theme redraws nothing.
(() => {
  const root = document.documentElement;
  const template = JSON.parse(document.getElementById("template").textContent);
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const charts = Object.keys(figures).map((id) => document.getElementById(id));
  const config = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };

  // With a view box a chart scales as a drawing wherever it cannot be drawn again.
  const scalable = (chart) => {
    const { width, height } = chart._fullLayout;
    for (const svg of chart.querySelectorAll("svg.main-svg")) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.style.setProperty("--ratio", width / height);
  };
  for (const chart of charts) {
    const { data, layout } = figures[chart.id];
    Plotly.newPlot(chart, data, { ...layout, template }, config).then(() => {
      scalable(chart);
      chart.on("plotly_afterplot", () => scalable(chart));
    });
  }

  // On paper charts are drawn a little wider than the place they get there (A4: 690 and 335), which sets their
  // text like the text around them; where a browser does not tell that it prints, the view box scales them.
  const paper = { wide: 760, half: 420, flatter: 0.75 };
  addEventListener("beforeprint", () => {
    for (const chart of charts) {
      const half = chart.closest(".grid") !== null;
      const height = figures[chart.id].layout.height * (chart.id.startsWith("chart-time") ? paper.flatter : 1);
      Plotly.relayout(chart, { width: half ? paper.half : paper.wide, height, autosize: false });
    }
  });
  addEventListener("afterprint", () => {
    for (const chart of charts) {
      Plotly.relayout(chart, { width: null, height: figures[chart.id].layout.height, autosize: true });
    }
  });

  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = document.getElementById("theme");
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();

  document.getElementById("print").addEventListener("click", () => print());
})();
