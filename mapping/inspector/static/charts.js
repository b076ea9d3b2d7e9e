// Draws charts with Observable Plot. Without this their values stand in tables.
"use strict";

const colours = ["var(--series-0)", "var(--series-1)", "var(--series-2)"];

function valueText(value, isShare) {
  return isShare ? `${(100 * value).toFixed(1)} %` : value.toLocaleString("en", { maximumFractionDigits: 2 });
}

const plotted = [...document.querySelectorAll(".plot[data-plot]")].map((place) => ({ place, chart: JSON.parse(place.dataset.plot) }));
// Columns of several series stand on each other.
const numbers = ({ rows, style }) =>
  rows.flatMap(([, ...own]) => (style === "columns" ? [own.reduce((sum, value) => sum + (value ?? 0), 0)] : own.filter((value) => value !== null)));

// Charts of the same thing have the same scale: shares from 0 to 100 %, charts of one name up to the largest of them.
function scale({ name, style, isShare }) {
  if (isShare) return [0, 1];
  const all = plotted.filter(({ chart }) => chart.name === name && chart.style === style).flatMap(({ chart }) => numbers(chart));
  return [Math.min(0, ...all), Math.max(...all) || 1];
}

function draw({ place, chart }) {
  const { series, rows, isShare } = chart;
  const values = rows.flatMap(([label, ...own]) =>
    own.map((value, number) => ({ label, series: series[number], value })).filter(({ value }) => value !== null));
  if (!values.length) return place.remove();
  const labels = rows.map(([label]) => label), isMany = series.length > 1;
  const text = ({ label, value }) => `${label}: ${valueText(value, isShare)}`;
  const tick = (value) => (isShare ? `${Math.round(100 * value)} %` : value.toLocaleString("en", { notation: "compact" }));
  const common = { className: "plotted", width: 540, color: { domain: series, range: colours } };
  const own = { fill: "series", title: text };
  const cut = (label) => (label.length > 30 ? `${label.slice(0, 29)}…` : label);
  const drawn = chart.style === "columns"
    ? Plot.plot({
        ...common, height: 240, marginLeft: 56, marginBottom: 42,
        x: { domain: labels, label: chart.label, ticks: labels.filter((_, at) => at % Math.ceil(labels.length / 8) === 0) },
        y: { grid: true, label: null, ticks: 5, tickFormat: tick, domain: scale(chart) },
        marks: [
          Plot.barY(values, { ...own, x: "label", y: "value", tip: false }),
          Plot.ruleY([0], { stroke: "currentColor" }),
          ...(chart.level ? [Plot.ruleY([chart.level[0]], { stroke: colours[1], strokeDasharray: "5 3" }),
            Plot.text([chart.level], { y: (level) => level[0], text: (level) => level[1], frameAnchor: "right", dy: -8 })] : []),
        ],
      })
    : Plot.plot({
        ...common, height: 24 + rows.length * (isMany ? 18 * series.length + 6 : 26), marginRight: 56, marginTop: 4, marginBottom: 4,
        marginLeft: Math.min(220, 16 + 6.6 * Math.max(...labels.map((label) => cut(label).length))),
        x: { axis: null, domain: scale(chart) },
        y: isMany ? { axis: null, domain: series } : { label: null, domain: labels, tickSize: 0, tickFormat: cut },
        fy: isMany ? { label: null, domain: labels, tickFormat: cut, axis: "left", padding: 0.18 } : undefined,
        marks: [
          Plot.barX(values, { ...own, x: "value", y: isMany ? "series" : "label", fy: isMany ? "label" : undefined, insetTop: 1, insetBottom: 1 }),
          Plot.text(values, { x: "value", y: isMany ? "series" : "label", fy: isMany ? "label" : undefined, text: ({ value }) => valueText(value, isShare), textAnchor: "start", dx: 5, fill: "currentColor" }),
          Plot.ruleX([0], { stroke: "currentColor" }),
        ],
      });
  // Plot brings a style of its own, which the policy of the page does not allow; inspector.css has what it says.
  drawn.querySelectorAll("style").forEach((style) => style.remove());
  drawn.setAttribute("aria-hidden", "true");
  if (isMany) {
    const legend = document.createElement("div");
    legend.className = "legend";
    for (const [number, name] of series.entries()) {
      const entry = document.createElement("span");
      entry.append(d3.create("svg").attr("viewBox", "0 0 10 10").attr("aria-hidden", "true")
        .call((svg) => svg.append("circle").attr("cx", 5).attr("cy", 5).attr("r", 5).attr("fill", colours[number])).node(), name);
      legend.append(entry);
    }
    place.append(legend);
  }
  place.append(drawn);
  if (place.scrollHeight > place.clientHeight) place.tabIndex = 0;  // so that keys scroll it
}

plotted.forEach(draw);
