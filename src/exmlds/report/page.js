"use strict";
{
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const query = new URLSearchParams(location.hash.slice(1));  // #theme=dark&search=wine
  const percent = (share) => (100 * share).toFixed(1);
  const count = (n) => n.toLocaleString("en");
  // The parts of a URI, after each of which a line may end; page.py breaks names in the same way.
  const partsOf = (name) => (/:[/]{2}/.test(name) ? name.split(/(?<=[/#])(?![/#])/) : [name]);
  const showName = (node, name) => node.replaceChildren(
    ...partsOf(name).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));

  themes();
  threshold(report.over_threshold, document.getElementById("threshold"));
  document.querySelectorAll("table.sortable").forEach(sortable);
  const allLabels = document.getElementById("all-labels");
  if (allLabels) labelTable(report.label_counts, allLabels);
  if (report.label_map) labelMap(report.label_map, document.getElementById("map"));

  function themes() {
    const root = document.documentElement, button = document.getElementById("theme");
    const prefersDark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
    const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    if (["light", "dark"].includes(query.get("theme"))) root.dataset.theme = query.get("theme");
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      name();
    });
    prefersDark.addEventListener("change", name);
    button.hidden = false;
    name();
  }

  // The slider moves over the grid of thresholds. The sentence is that of `_meaning` in page.py.
  function threshold(curve, section) {
    const slider = section.querySelector("#level"), marker = section.querySelector(".marker");
    const meaning = section.querySelector("#meaning"), values = section.querySelectorAll("dl.pairs dd");
    const first = curve.thresholds[0], wide = curve.thresholds.at(-1) - first || 1;
    const of100 = (share) => {
      const whole = Math.floor(100 * share + 0.5);
      if (share === 0 || share === 1 || (whole > 0 && whole < 100)) return String(whole);
      return Math.min(Math.max(100 * share, 0.1), 99.9).toFixed(1);
    };
    const show = () => {
      const i = Number(slider.value), level = curve.thresholds[i];
      const assigned = curve.assigned[i], right = curve.right[i];
      const recall = right / curve.true, f1 = 2 * right / (assigned + curve.true);
      const said = assigned ? `${of100(right / assigned)} of 100 assigned labels are right` : "no label is assigned";
      meaning.textContent = `At ${Number(level.toPrecision(3))}: ${said}, ${of100(recall)} of 100 right labels are found.`;
      slider.setAttribute("aria-valuetext", meaning.textContent);
      const shown = [assigned ? percent(right / assigned) : "–", percent(recall), percent(f1), (assigned / curve.rows).toFixed(2)];
      values.forEach((value, j) => { value.textContent = shown[j]; });
      marker.setAttribute("transform", `translate(${(level - first) / wide * marker.dataset.width} 0)`);
    };
    const goTo = (i) => { slider.value = i; show(); };
    slider.addEventListener("input", show);
    section.querySelector("#own-level").addEventListener("click", () => goTo(curve.own));
    section.querySelector(".tools").hidden = false;
    goTo(curve.own);  // a browser may keep the position of an earlier visit
  }

  // A click on a column header sorts by it, numbers descending and names ascending; a second click reverses.
  function sortButtons(table, sort) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numbers = head.classList.contains("number");
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : numbers;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const compare = numbers ? (a, b) => a - b : (a, b) => a.localeCompare(b);
        sort(column, (a, b) => (down ? compare(b, a) : compare(a, b)));
      });
    });
  }

  function sortable(table) {
    const body = table.tBodies[0];
    sortButtons(table, (column, compare) => {
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
    });
  }

  function labelTable(counts, section) {
    const table = section.querySelector("table"), body = table.tBodies[0], onePage = body.rows.length;
    const input = section.querySelector("input"), status = section.querySelector(".pager output");
    const turns = [...section.querySelectorAll("[data-turn]")];
    const share = (part, whole) => (whole ? part / whole : null);
    const lines = counts.names.map((name, i) => {
      const test = counts.test[i], assigned = counts.assigned[i], found = counts.found[i];
      const f1 = test ? 2 * found / (test + assigned) : null;
      return [name, f1, share(found, assigned), share(found, test), test, assigned, counts.training[i]];
    });
    const lowered = counts.names.map((name) => name.toLowerCase());
    let order = [...lines.keys()], matching = order, start = 0;

    function draw() {
      body.replaceChildren(...matching.slice(start, start + onePage).map((i) => {
        const row = document.createElement("tr");
        lines[i].forEach((value, column) => {
          const cell = document.createElement(column ? "td" : "th");
          cell.className = column ? "number" : "name";
          if (column) {
            cell.textContent = value === null ? "–" : column < 4 ? percent(value) : count(value);
          } else {
            cell.scope = "row";
            showName(cell, value);
          }
          row.append(cell);
        });
        return row;
      }));
      const end = Math.min(start + onePage, matching.length);
      const total = matching.length === lines.length ? "" : `, found among ${count(lines.length)}`;
      status.textContent = matching.length
        ? `${count(start + 1)}–${count(end)} of ${count(matching.length)} labels${total}` : "No label matches";
      turns[0].disabled = start === 0;
      turns[1].disabled = end === matching.length;
    }

    function filter() {
      const wanted = input.value.trim().toLowerCase();
      matching = wanted ? order.filter((i) => lowered[i].includes(wanted)) : order;
      start = 0;
      draw();
    }

    function download() {
      const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const text = ["label,training_rows,test_rows,assigned,found,precision,recall,f1", ...order.map((i) => {
        const [name, f1, precision, recall, test, assigned, training] = lines[i];
        return [quoted(name), training, test, assigned, counts.found[i], precision, recall, f1].join(",");
      })].join("\n");
      const link = document.createElement("a");
      // The byte order mark tells spreadsheets that the file is UTF-8.
      link.href = URL.createObjectURL(new Blob(["\ufeff", text, "\n"], { type: "text/csv" }));
      link.download = "labels.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }

    sortButtons(table, (column, compare) => {
      const key = (i) => lines[i][column] ?? -1;
      order = [...order].sort((a, b) => compare(key(a), key(b)));
      filter();
    });
    turns.forEach((button) => button.addEventListener("click", () => {
      start += onePage * Number(button.dataset.turn);
      draw();
    }));
    input.addEventListener("input", filter);
    section.querySelector(".download").addEventListener("click", download);
    section.querySelectorAll(".tools").forEach((tools) => { tools.hidden = false; });
    draw();
  }

  function labelMap(map, section) {
    const frame = section.querySelector(".map"), svg = frame.querySelector("svg");
    const tooltip = frame.querySelector(".tooltip"), status = section.querySelector("output");
    const input = section.querySelector("input"), matches = section.querySelector(".matches");
    const svgNode = (name) => document.createElementNS(svg.namespaceURI, name);
    const dots = svgNode("g"), words = svgNode("g");
    const most = Math.max(...map.training);
    const radius = map.training.map((rows) => 3 + 11 * Math.sqrt(rows / most) * Math.min(1, 12 / Math.sqrt(map.names.length)));
    const lowered = map.names.map((name) => name.toLowerCase());
    // A URI is drawn by its last part, because the first parts are the same for most labels.
    const drawn = map.names.map((name) => {
      const last = partsOf(name).findLast((part) => part) ?? name;
      return last.length > 28 ? `${last.slice(0, 27)}…` : last;
    });
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `12px ${getComputedStyle(svg).fontFamily}`;  // as in page.css
    const widths = drawn.map((text) => pen.measureText(text).width + 3);  // 3 is the stroke around them
    const circles = map.names.map((_, i) => {
      const circle = svgNode("circle");
      circle.setAttribute("r", radius[i].toFixed(1));
      circle.setAttribute("class", map.f1[i] === null ? "none" : `q${Math.min(4, Math.floor(5 * map.f1[i]))}`);
      return circle;
    });
    // Rare labels are drawn last, because their small dots must stay visible and clickable.
    dots.append(...circles);
    svg.append(dots, words);

    let width = 0, height = 0, scale = 1, left = 0, top = 0, chosen = -1, found = new Set();
    const side = () => Math.min(width, height) - 60;
    const stretch = () => Math.min(1.6, (width - 60) / side());  // fills a wide frame
    const across = (i) => left + scale * (width / 2 + (map.x[i] - 0.5) * side() * stretch());
    const down = (i) => top + scale * (height / 2 + (map.y[i] - 0.5) * side());

    function draw() {
      const xs = map.x.map((_, i) => across(i)), ys = map.y.map((_, i) => down(i));
      circles.forEach((circle, i) => {
        circle.setAttribute("cx", xs[i].toFixed(1));
        circle.setAttribute("cy", ys[i].toFixed(1));
      });
      svg.style.touchAction = scale > 1 ? "none" : "pan-y";
      name(xs, ys);
    }

    // Draw the names of the found labels, or of the most frequent ones, next to their dots where there is room.
    function name(xs, ys) {
      const shown = [], visible = [...map.names.keys()].filter(
        (i) => xs[i] > 0 && xs[i] < width && ys[i] > 0 && ys[i] < height);
      const dot = (i) => [xs[i] - radius[i], ys[i] - radius[i], xs[i] + radius[i], ys[i] + radius[i]];
      const taken = visible.length <= 250 ? visible.map(dot) : [];  // with many dots, names may cover some
      const free = (a) => a[0] > 0 && a[1] > 0 && a[2] < width && a[3] < height
        && !taken.some((b) => b[0] < a[2] && a[0] < b[2] && b[1] < a[3] && a[1] < b[3]);
      const around = (anchor, at, above, wide) => {
        const from = at - { start: 0, middle: wide / 2, end: wide }[anchor];
        return [from, above, from + wide, above + 15];
      };
      for (const i of found.size ? visible.filter((j) => found.has(j)) : visible) {
        if (shown.length >= 100) break;
        const wide = widths[i], [x, y, r] = [xs[i], ys[i], radius[i] + 3];
        const spot = [
          ["start", x + r, y - 8], ["end", x - r, y - 8], ["middle", x, y - r - 13], ["middle", x, y + r - 1],
        ].find(([anchor, at, above]) => free(around(anchor, at, above, wide)));
        if (!spot) continue;
        const [anchor, at, above] = spot;
        taken.push(around(anchor, at, above, wide));
        const word = svgNode("text");
        word.setAttribute("text-anchor", anchor);
        word.setAttribute("x", at.toFixed(1));
        word.setAttribute("y", (above + 12).toFixed(1));
        word.textContent = drawn[i];
        shown.push(word);
      }
      words.replaceChildren(...shown);
    }

    function zoom(factor, x = width / 2, y = height / 2) {
      const next = Math.min(60, Math.max(1, scale * factor));
      left = x - (x - left) * (next / scale);
      top = y - (y - top) * (next / scale);
      scale = next;
      keepInside();
      draw();
    }

    function keepInside() {
      left = Math.min(0, Math.max(left, width * (1 - scale)));
      top = Math.min(0, Math.max(top, height * (1 - scale)));
    }

    function pan(dx, dy) {
      left += dx;
      top += dy;
      keepInside();
      draw();
    }

    function showTooltip(i) {
      circles[chosen]?.classList.remove("chosen");
      chosen = i;
      tooltip.hidden = i < 0;
      if (i < 0) return;
      circles[i].classList.add("chosen");
      const title = document.createElement("b");
      showName(title, map.names[i]);
      const rows = `${count(map.training[i])} training rows, ${count(map.test[i])} test rows`;
      const quality = map.f1[i] === null ? "not in the test rows" : `F1 ${percent(map.f1[i])} %`;
      tooltip.replaceChildren(title, rows, document.createElement("br"), quality);
      const x = across(i), y = down(i), gap = radius[i] + 8;
      tooltip.style.left = `${Math.max(4, Math.min(x - tooltip.offsetWidth / 2, width - tooltip.offsetWidth - 4))}px`;
      const above = y - tooltip.offsetHeight - gap;
      tooltip.style.top = `${above > 4 ? above : Math.min(y + gap, height - tooltip.offsetHeight - 4)}px`;
    }

    function nearest(x, y) {
      let best = -1, least = 14;
      for (let i = 0; i < circles.length; i++) {
        const far = Math.hypot(across(i) - x, down(i) - y) - radius[i];
        if (far < least) [best, least] = [i, far];
      }
      return best;
    }

    function goTo(i) {
      scale = Math.max(scale, 3);
      left = width / 2 - (across(i) - left);
      top = height / 2 - (down(i) - top);
      keepInside();
      chosen = i;
      draw();
      showTooltip(i);
    }

    function search() {
      const wanted = input.value.trim().toLowerCase();
      found = new Set();
      if (wanted) lowered.forEach((text, i) => { if (text.includes(wanted)) found.add(i); });
      circles.forEach((circle, i) => circle.classList.toggle("hit", found.has(i)));
      dots.classList.toggle("searched", wanted !== "");
      status.textContent = wanted ? `${count(found.size)} of ${count(circles.length)} labels match` : drawnLabels();
      matches.replaceChildren(...[...found].slice(0, 12).map((i) => {
        const item = document.createElement("li"), button = document.createElement("button");
        button.type = "button";
        showName(button, map.names[i]);
        button.addEventListener("click", () => goTo(i));
        item.append(button);
        return item;
      }));
      showTooltip(-1);
      draw();
    }

    const drawnLabels = () => `${count(dots.childElementCount)} labels drawn`;

    const fingers = new Map();
    // The wheel zooms only after the pointer has moved over the map, so that scrolling the page does not zoom.
    let meant = false, last = null;
    const positionOf = (event) => {
      const box = svg.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    svg.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, positionOf(event));
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const [x, y] = positionOf(event), before = fingers.get(event.pointerId);
      const here = `${event.clientX} ${event.clientY}`;
      meant ||= last !== null && last !== here;
      last = here;
      if (!before) {
        const i = nearest(x, y);
        if (i !== chosen) showTooltip(i);
        return;
      }
      fingers.set(event.pointerId, [x, y]);
      showTooltip(-1);
      if (fingers.size === 2) {
        const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
        const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
        zoom(apart([x, y]) / Math.max(1, apart(before)), (x + other[0]) / 2, (y + other[1]) / 2);
      } else {
        pan(x - before[0], y - before[1]);
      }
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, (event) => {
        fingers.delete(event.pointerId);
        if (end === "pointerup") showTooltip(nearest(...positionOf(event)));
      });
    }
    svg.addEventListener("pointerleave", () => {
      meant = false;
      last = null;
      showTooltip(-1);
    });
    addEventListener("scroll", () => { meant = false; }, { passive: true });
    svg.addEventListener("wheel", (event) => {
      const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016));
      if (!meant || (scale === 1 && factor < 1)) return;
      event.preventDefault();
      showTooltip(-1);
      zoom(factor, ...positionOf(event));
    }, { passive: false });
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (moves[event.key] && scale > 1) pan(...moves[event.key]);
      else if (event.key === "+" || event.key === "=") zoom(1.5);
      else if (event.key === "-") zoom(1 / 1.5);
      else return;
      showTooltip(-1);
      event.preventDefault();
    });
    section.querySelector(".zoom").addEventListener("click", (event) => {
      const factor = { in: 1.5, out: 1 / 1.5, all: 0 }[event.target.dataset.zoom];
      if (factor === undefined) return;
      showTooltip(-1);
      zoom(factor);
    });
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && found.size) goTo([...found][0]);
    });

    function measure() {
      const box = svg.getBoundingClientRect();
      if (!box.width || matchMedia("print").matches) return;  // printing keeps the shape on the screen
      [width, height] = [box.width, box.height];
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      keepInside();
      draw();
    }
    section.querySelector(".tools").hidden = false;
    measure();
    new ResizeObserver(measure).observe(frame);
    if (query.has("search")) {
      input.value = query.get("search");
      section.scrollIntoView();
    }
    search();
    svg.dataset.drawn = dots.childElementCount;
  }
}
