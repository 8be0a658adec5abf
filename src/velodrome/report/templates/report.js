"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

// Copy: the clipboard may be refused (an old browser, a page in a frame); then the command is at least selected.
for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
}

// Sort by the values, not by what is shown; what is missing goes last whichever way.
const body = document.querySelector("#raw tbody");
const headings = [...document.querySelectorAll("#raw th")];
headings.forEach((heading, column) => {
  heading.firstElementChild.addEventListener("click", () => {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const value = (row) => data.rows[Number(row.dataset.row)][column];
    const compare = (a, b) => {
      const x = value(a), y = value(b);
      if (x === null || y === null) return (x === null) - (y === null);
      const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
      return descending ? -order : order;
    };
    body.append(...[...body.rows].sort(compare));
    for (const other of headings) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  });
});

// A spreadsheet runs a text that begins like a formula: an apostrophe keeps it text.
const field = (value) => {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};
document.getElementById("csv").addEventListener("click", () => {
  const lines = [data.columns, ...data.rows].map((row) => row.map(field).join(","));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
  link.download = data.study.replace(/[^\w.-]/g, "_") + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

// A link to a cell opens it; paper shows everything.
const open = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", open);
open();
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
