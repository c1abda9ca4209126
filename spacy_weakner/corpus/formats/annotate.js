// The page of `suggest --to html`. It holds rows in the layout of Prodigy, whose offsets count code points; strings count
// UTF-16 units here, so texts are cut only as arrays of code points. Entities are kept as words: [first, last].
"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const text = element("text");
  const KEYS = [..."123456789abcdefghijklmnopqrtvwxyz"]; // of labels, without "s" (skip) and "u" (undo)
  const COMMANDS = { Enter: accept, Delete: remove, Backspace: remove, s: skip, u: undo, PageUp: previous, PageDown: next };
  const source = element("rows").textContent;
  const items = JSON.parse(source).map(readItem);
  const labels = [...new Set([...JSON.parse(element("known-labels").textContent), ...items.flatMap(labelsOf)])].sort();
  const storageKey = `spacy-weakner-${hash(source)}`;
  const history = []; // states before each change: [number of the item, its state]
  let current = 0;
  let anchor = 0; // the selection: words from here to `head`
  let head = 0;
  let dragging = false;
  let unsaved = false;

  // Items

  function readItem(row) {
    const characters = Array.from(row.text);
    // White space is shown between words, but is not one.
    const words = row.tokens.filter((token) => /\P{White_Space}/u.test(token.text));
    const suggested = (row.spans || []).flatMap((span) => {
      const first = words.findIndex((word) => word.start >= span.start);
      const last = words.findLastIndex((word) => word.end <= span.end);
      return first < 0 || last < first ? [] : [{ first, last, label: span.label, id: span.kb_id, score: span.score }];
    });
    return { row, characters, words, state: { answer: "", entities: suggested } };
  }

  function labelsOf(item) {
    return item.state.entities.map((entity) => entity.label);
  }

  function hash(string) {
    let value = string.length;
    for (let i = 0; i < string.length; i++) value = (Math.imul(value, 31) + string.charCodeAt(i)) | 0;
    return value >>> 0;
  }

  function covered(item, first, last) {
    return item.characters.slice(item.words[first].start, item.words[last].end).join("");
  }

  // Storage: a closed page loses nothing.

  function store() {
    unsaved = true;
    const changed = {};
    items.forEach((item, i) => {
      if (item.changed) changed[i] = item.state;
    });
    try {
      localStorage.setItem(storageKey, JSON.stringify({ labels, items: changed }));
      element("warning").hidden = true;
    } catch {
      element("warning").textContent = "This browser cannot keep your answers: save before you close the page.";
      element("warning").hidden = false;
    }
  }

  function restore() {
    try {
      const stored = JSON.parse(localStorage.getItem(storageKey)) || { labels: [], items: {} };
      stored.labels.forEach(addLabel);
      for (const [i, state] of Object.entries(stored.items)) {
        const isValid = ({ first, last }) => 0 <= first && first <= last && last < items[i].words.length;
        if (state.entities.every(isValid)) Object.assign(items[i], { state, changed: true });
      }
    } catch {
      // No storage, or nothing that this page has written: `store` warns.
    }
  }

  // Changes

  function change(state) {
    const item = items[current];
    history.push([current, item.state, item.changed]);
    Object.assign(item, { state: { ...item.state, ...state }, changed: true });
    store();
  }

  function undo() {
    const last = history.pop();
    if (!last) return tell("Nothing to undo.");
    const [i, state, changed] = last;
    Object.assign(items[i], { state, changed });
    store();
    if (i === current) drawText();
    else go(i);
    tell("Undone.");
  }

  // The words that a label is given to, or taken from: those selected, or the entity around a single one.
  function target() {
    const [first, last] = [Math.min(anchor, head), Math.max(anchor, head)];
    const inside = (entity) => entity.first <= first && last <= entity.last;
    return (first === last && items[current].state.entities.find(inside)) || { first, last };
  }

  function others({ first, last }) {
    return items[current].state.entities.filter((entity) => entity.last < first || last < entity.first);
  }

  function mark(label) {
    const item = items[current];
    const { first, last, label: before } = target();
    if (before === label) return;
    change({ entities: [...others({ first, last }), { first, last, label }].sort((a, b) => a.first - b.first) });
    head = anchor = last;
    drawText();
    tell(`${covered(item, first, last)}: ${label}`);
  }

  function remove() {
    const rest = others(target());
    if (rest.length === items[current].state.entities.length) return tell("No entity is selected.");
    change({ entities: rest });
    anchor = head;
    drawText();
    tell("Removed.");
  }

  function accept() {
    answer("accept");
  }

  function skip() {
    answer("skip");
  }

  function answer(value) {
    change({ answer: value });
    const isOpen = (item) => !item.state.answer;
    const after = items.findIndex((item, i) => i > current && isOpen(item));
    const open = after >= 0 ? after : items.findIndex(isOpen);
    go(open >= 0 ? open : current);
    const then = open >= 0 ? element("place").textContent : "All sentences are answered: save them.";
    tell(`${value === "accept" ? "Accepted" : "Skipped"}. ${then}`);
  }

  function save() {
    const accepted = items.filter((item) => item.state.answer === "accept");
    if (!accepted.length) return tell("Nothing is accepted yet.");
    const lines = accepted.map((item) => `${JSON.stringify(answered(item))}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    link.download = `${document.title}-answers.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    unsaved = false;
    tell(`${accepted.length} of ${items.length} sentences are in ${link.download}. Convert it with "spacy weakner convert".`);
  }

  function answered(item) {
    const spans = item.state.entities.map(({ first, last, label, id }) => ({
      start: item.words[first].start,
      end: item.words[last].end,
      token_start: item.words[first].id,
      token_end: item.words[last].id,
      label,
      text: covered(item, first, last),
      ...(id ? { kb_id: id } : {}),
    }));
    return { ...item.row, spans, answer: "accept", _view_id: "ner_manual" };
  }

  function addLabel(label) {
    if (label && !labels.includes(label)) labels.push(label);
  }

  // Display. Texts and labels are only ever set as text.

  function make(name, className, content) {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = content;
    return made;
  }

  function color(label) {
    return `hsl(${(labels.indexOf(label) * 137.5) % 360} 75% 86%)`;
  }

  function go(i) {
    current = i;
    anchor = head = 0;
    drawText();
    text.focus();
  }

  function previous() {
    go(Math.max(current - 1, 0));
    tell(element("place").textContent);
  }

  function next() {
    go(Math.min(current + 1, items.length - 1));
    tell(element("place").textContent);
  }

  function drawText() {
    const { row, characters, words, state } = items[current];
    text.textContent = "";
    let place = text;
    let end = 0;
    words.forEach((word, i) => {
      const entity = state.entities.find(({ first, last }) => first <= i && i <= last);
      place.append(characters.slice(end, word.start).join(""));
      end = word.end;
      if (entity?.first === i) {
        place = make("span", "entity", "");
        place.setAttribute("role", "group");
        place.setAttribute("aria-label", entity.label);
        place.style.background = color(entity.label);
        text.append(place);
      }
      const option = make("span", "word", characters.slice(word.start, word.end).join(""));
      option.id = `word-${i}`;
      option.setAttribute("role", "option");
      if (entity) option.setAttribute("aria-label", `${option.textContent}, ${entity.label}`);
      place.append(option);
      if (entity?.last === i) {
        const score = typeof entity.score === "number" ? ` ${Math.round(100 * entity.score)} %` : "";
        const label = make("small", "", entity.label + score);
        label.setAttribute("aria-hidden", "true");
        label.dir = "auto";
        place.append(label);
        place = text;
      }
    });
    text.append(characters.slice(end).join(""));
    const status = { accept: "accepted", skip: "skipped", "": "not answered" }[state.answer];
    element("place").textContent = `Sentence ${current + 1} of ${items.length}: ${status}`;
    const notes = Object.entries(row.meta || {}).map(([name, value]) => `${name}: ${value}`);
    element("why").textContent = notes.join(" · ");
    drawSelection();
    drawCount();
  }

  function drawSelection() {
    const [first, last] = [Math.min(anchor, head), Math.max(anchor, head)];
    const entity = items[current].state.entities.indexOf(target());
    text.querySelectorAll(".entity").forEach((span, i) => span.classList.toggle("target", i === entity));
    items[current].words.forEach((_, i) => {
      const option = element(`word-${i}`);
      option.setAttribute("aria-selected", String(first <= i && i <= last));
      option.classList.toggle("head", i === head);
    });
    text.setAttribute("aria-activedescendant", `word-${head}`);
  }

  function drawCount() {
    const count = (value) => items.filter((item) => item.state.answer === value).length;
    const [accepted, skipped, open] = ["accept", "skip", ""].map(count);
    element("count").textContent = `${accepted} accepted, ${skipped} skipped, ${open} remaining of ${items.length}`;
    element("bar").max = items.length;
    element("bar").value = items.length - open;
  }

  function drawLabels() {
    element("labels").textContent = "";
    labels.forEach((label, i) => {
      const button = make("button", "", `${label} `);
      button.type = "button";
      button.style.background = color(label);
      if (i < KEYS.length) button.append(make("kbd", "", KEYS[i]));
      button.addEventListener("click", () => {
        mark(label);
        text.focus();
      });
      element("labels").append(button);
    });
  }

  function tell(message) {
    element("status").textContent = message;
  }

  // Keyboard and mouse

  function select(from, to) {
    [anchor, head] = [from, to];
    drawSelection();
    element(`word-${head}`).scrollIntoView({ block: "nearest" });
  }

  function move(key, extend) {
    const end = items[current].words.length - 1;
    const isForward = (key === "ArrowRight") !== (getComputedStyle(text).direction === "rtl");
    const to = key === "Home" ? 0 : key === "End" ? end : Math.min(Math.max(head + (isForward ? 1 : -1), 0), end);
    select(extend ? anchor : to, to);
  }

  document.addEventListener("keydown", (event) => {
    const { target: at } = event;
    // Keyboards of other scripts have no Latin letters: there, the place of the key counts.
    const typed = event.key.length > 1 || /^[a-z\d]$/i.test(event.key) ? event.key : event.code.replace(/^Key|^Digit/, "");
    const key = typed.length === 1 ? typed.toLowerCase() : typed;
    const run = (action, ...values) => {
      event.preventDefault();
      action(...values);
    };
    if (event.isComposing || event.altKey || at.tagName === "INPUT") return;
    // A key that is held down answers one sentence, not all of them.
    if (event.repeat && ["Enter", "s", "u", "z"].includes(key)) {
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey) {
      if (key === "z") run(undo);
      if (key === "s") run(save);
    } else if (key === "Enter" && at !== text && at !== document.body) {
      return; // presses the button that has the focus
    } else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) {
      run(move, key, event.shiftKey);
    } else if (key === "Escape") {
      run(select, head, head);
    } else if (Object.hasOwn(COMMANDS, key)) {
      run(COMMANDS[key]);
    } else if (KEYS.includes(key) && KEYS.indexOf(key) < labels.length) {
      run(mark, labels[KEYS.indexOf(key)]);
    }
  });

  // The word nearest to the mouse, on the nearest line.
  function wordAt({ clientX: x, clientY: y }) {
    const distance = ({ left, right, top, bottom }) =>
      1000 * Math.max(top - y, y - bottom, 0) + Math.max(left - x, x - right, 0);
    const distances = items[current].words.map((_, i) =>
      Math.min(...Array.from(element(`word-${i}`).getClientRects(), distance)),
    );
    return distances.indexOf(Math.min(...distances));
  }

  text.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    text.setPointerCapture(event.pointerId);
    dragging = true;
    const word = wordAt(event);
    select(event.shiftKey ? anchor : word, word);
  });
  text.addEventListener("pointermove", (event) => {
    if (dragging) select(anchor, wordAt(event));
  });
  for (const name of ["pointerup", "pointercancel"]) text.addEventListener(name, () => (dragging = false));

  for (const [id, action] of Object.entries({ accept, remove, skip, undo, previous, next, save })) {
    element(id).addEventListener("click", () => {
      action();
      text.focus();
    });
  }
  element("form").addEventListener("submit", (event) => {
    event.preventDefault();
    addLabel(element("new").value.trim());
    element("new").value = "";
    store();
    drawLabels();
    text.focus();
  });
  addEventListener("storage", (event) => {
    if (event.key !== storageKey) return;
    restore(); // the page is open twice
    drawLabels();
    drawText();
  });
  addEventListener("beforeunload", (event) => {
    if (unsaved && !element("warning").hidden) event.preventDefault();
  });

  restore();
  drawLabels();
  go(Math.max(items.findIndex((item) => !item.state.answer), 0));
})();
