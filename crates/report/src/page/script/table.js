"use strict";
for (const button of document.querySelectorAll("button.csv")) {
  const cell = (c) => {
    let text = c.dataset.v ?? c.textContent.trim().replace(/\s+/g, " ");
    // A spreadsheet takes text that begins like this for a formula.
    if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = "'" + text;
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const table = button.closest(".table").querySelector("table");
    const lines = [...table.rows].map((row) => [...row.cells].filter((c) => !c.ariaHidden).map(cell).join(",") + "\r\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "text/csv" }));
    link.download = button.dataset.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
