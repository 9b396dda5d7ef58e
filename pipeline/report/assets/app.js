/* app.js: data, thumbnails and routes of the pages.
 *
 * Data files are scripts that call clpipe(kind, number, value); load() adds one and waits for it.
 * Everything that comes from a file is put into the page as text, never as markup. */
"use strict";

/* What a name of an address or of the data is looked up in: names of JavaScript's own are not in it. */
const table = entries => Object.assign(Object.create(null), entries);

const App = { summary: null, data: new Map(), waiting: new Map(), known: new Map(), views: table(), last: "#/", turn: 0, notice: null };

/* --- data -------------------------------------------------------------------------------------- */

window.clpipe = (kind, number, value) => {
    if (kind === "summary") {
        App.summary = value;
        App.start();
        return;
    }
    App.data.set(kind + number, value);
};

/* The value of data/KIND-NUMBER.js, or data/KIND.js without a number; rejected if it is missing. */
App.load = (kind, number) => {
    const key = kind + (number ?? 0);
    if (!App.waiting.has(key))
        App.waiting.set(key, new Promise((resolve, reject) => {
            const script = document.createElement("script");
            script.src = number === undefined ? `data/${kind}.js` : `data/${kind}-${number}.js`;
            script.onload = () => {
                const value = App.data.get(key);
                if (value === undefined)
                    reject(new Error(script.src));
                else
                    resolve(value);
                script.remove();
            };
            script.onerror = () => {
                App.waiting.delete(key);
                reject(new Error("missing: " + script.getAttribute("src")));
            };
            document.head.append(script);
        }));
    return App.waiting.get(key);
};

/* What is known of picture p, by its number in the pages; null: that was not loaded yet. */
App.record = p => {
    const chunk = App.summary.chunk, i = p % chunk, images = App.data.get("images" + Math.floor(p / chunk));
    if (!images)
        return null;
    const value = name => images[name] ? images[name][i] : undefined;
    App.known.set(value("id"), p);
    return {
        p, id: value("id"), name: value("name"), row: value("row"), width: value("width"), height: value("height"),
        bytes: value("bytes"), format: App.summary.formats[value("format")]?.[0] ?? "",
        source: value("source"), distance: value("distance"), link: value("link"), words: value("words") ?? [],
        place: App.place(App.summary.sheets.first + p, value("w"), value("h")),
    };
};
App.picture = async p => {
    await App.load("images", Math.floor(p / App.summary.chunk));
    return App.record(p);
};

/* The number of the picture with a digest, as addresses have them; -1: it is not in this report. */
App.find = async id => {
    if (App.known.has(id) || !/^[0-9a-f]{16}$/.test(id))
        return App.known.get(id) ?? -1;
    const { images, chunk } = App.summary;
    const found = await App.load("find", Math.floor(parseInt(id.slice(0, 8), 16) * Math.ceil(images / chunk) / 2 ** 32));
    return found.includes(id) ? found[found.indexOf(id) + 1] : -1;
};
App.pictureLink = one => `#/picture/${one.id}`;

App.group = p => {
    const groups = App.summary.groups;
    let low = 0, high = groups.length - 1;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (groups[middle].first <= p && groups[middle].size > 0)
            low = middle;
        else
            high = middle - 1;
    }
    return groups[low];
};

/* --- words ------------------------------------------------------------------------------------- */

const number = new Intl.NumberFormat("en");
const count = n => number.format(n);
const counted = (n, one, many) => `${count(n)} ${n === 1 ? one : many ?? one + "s"}`;

function size(bytes) {
    const units = ["bytes", "kB", "MB", "GB", "TB"];
    let unit = 0;
    for (; bytes >= 999.5 && unit < units.length - 1; unit++)
        bytes /= 1000;
    return `${unit === 0 ? bytes : Number(bytes.toPrecision(3))} ${units[unit]}`;
}

function share(part, whole) {
    const percent = whole ? 100 * part / whole : 0;
    return percent >= 99.95 || percent === 0 ? `${Math.round(percent)} %` : `${percent.toFixed(1)} %`;
}

/* Significant digits, without an exponent for everyday values. */
const digits = (x, n = 4) => x === null || x === undefined ? "not defined" :
    Math.abs(x) >= 1e15 ? x.toExponential(2) : number.format(Number(x.toPrecision(n)));
const fixed = x => x === null || x === undefined ? "not defined" : x.toFixed(3);
const fine = (x, n = 3) => x === null || x === undefined ? "not defined" :
    new Intl.NumberFormat("en", { maximumSignificantDigits: n }).format(x);

/* A name as one line: control and format characters (marks of direction, zero-width ones) are shown. */
const shown = name => name.replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, c => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
const base = name => shown(name.slice(name.lastIndexOf("/") + 1) || name);
const folder = name => name.includes("/") ? shown(name.slice(0, name.lastIndexOf("/"))) : "";

/* What sets a cluster apart, with or without the shares. */
const named = words => words.map(([word]) => shown(word)).join(", ");
const shares = words => words.map(([word, part]) => `${shown(word)} ${Math.round(100 * part)} %`).join(", ");
App.groupName = group => group.words.length ? `${App.groupTitle(group)}: ${named(group.words)}` : App.groupTitle(group);
App.groupTitle = group => group.label < 0 ? "Not in a cluster" :
    App.summary.grouping === "clusters" ? `Cluster ${count(group.label)}` :
    App.summary.grouping === "folders" ? shown(group.title || "This folder") : "All pictures";
/* A folder by its path, a cluster by the picture nearest to its centre: numbers change from report to report. */
App.groupLink = group => `#/group/${group.label < 0 ? "none" : App.summary.grouping === "none" ? "all" : group.id}`;
App.groupWord = () => App.summary.grouping === "folders" ? counted(App.summary.groups.length, "folder") : counted(App.summary.clustering.k, "cluster");

/* --- elements ---------------------------------------------------------------------------------- */

/* h("a.name", {href}, children...): attributes as given; on…: listeners; text children as text. */
function h(tag, attributes, ...children) {
    const [name, ...classes] = tag.split(".");
    const element = document.createElement(name);
    if (classes.length)
        element.className = classes.join(" ");
    for (const [key, value] of Object.entries(attributes ?? {})) {
        if (value === undefined || value === null || value === false)
            continue;
        if (key.startsWith("on"))
            element.addEventListener(key.slice(2), value);
        else
            element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
    return element;
}

function svg(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes ?? {}))
        element.setAttribute(key, value);
    element.append(...children);
    return element;
}

/* --- thumbnails -------------------------------------------------------------------------------- */

/* Where the thumbnail of a cell lies: cells are counted through all sheets. */
App.place = (cell, w, h) => {
    const { columns, rows, cell: side } = App.summary.sheets;
    const each = columns * rows, i = cell % each;
    return { sheet: Math.floor(cell / each), x: i % columns * side, y: Math.floor(i / columns) * side, w, h };
};
App.sheet = n => `sheets/${String(n).padStart(5, "0")}.jpg`;
App.aspect = place => place.w && place.h ? Math.min(2.2, Math.max(0.55, place.w / place.h)) : 1;

/* Sheets are fetched when their thumbnails come near the window. */
const fetchSheet = thumb => {
    near.unobserve(thumb);
    thumb.style.backgroundImage = `url("${App.sheet(thumb.dataset.sheet)}")`;
};
const near = new IntersectionObserver(entries => entries.forEach(entry => {
    if (entry.isIntersecting)
        fetchSheet(entry.target);
}), { rootMargin: "300px" });

/* A thumbnail that fills a box, its middle visible. */
App.thumb = (place, alt) => {
    const element = h("span.thumb", { role: "img", "aria-label": alt });
    if (place.w) {
        element.dataset.sheet = place.sheet;
        near.observe(element);
    } else {
        element.classList.add("gone");
    }
    return element;
};
App.fit = (element, place, width, height) => {
    element.style.width = width + "px";
    element.style.height = height + "px";
    if (!place.w)
        return;
    const scale = Math.max(width / place.w, height / place.h);
    element.style.backgroundSize = `${App.summary.sheets.columns * App.summary.sheets.cell * scale}px auto`;
    element.style.backgroundPosition =
        `${-(place.x * scale + (place.w * scale - width) / 2)}px ${-(place.y * scale + (place.h * scale - height) / 2)}px`;
};

/* A link to a picture's view. */
App.tile = (one, extra) =>
    h("a.tile", { href: App.pictureLink(one), title: shown(one.name), tabindex: -1 },
        App.thumb(one.place, base(one.name)), extra);

/* Tiles in rows that fill the width. Arrow keys move between them; one of them is in the tab order. */
class Gallery {
    constructor(height, label) {
        this.height = height;
        this.items = [];
        this.element = h("ul.gallery", { "aria-label": label });
        this.element.addEventListener("keydown", event => this.key(event));
        this.width = this.lastRow = 0;
        new ResizeObserver(() => {
            if (Math.abs(this.element.clientWidth - this.width) >= 1)
                this.layout(0);
        }).observe(this.element);
    }

    add(tiles) {
        const from = this.items.length;
        for (const [tile, place] of tiles) {
            this.items.push({ tile, place, thumb: tile.querySelector(".thumb") });
            this.element.append(h("li", {}, tile));
        }
        if (from === 0 && this.items.length)
            this.items[0].tile.tabIndex = 0;
        this.layout(this.lastRow);
    }

    /* Lays out the rows from the one that begins with item `begin` on. */
    layout(begin) {
        const width = this.width = this.element.clientWidth, gap = 6;
        if (!width)
            return;
        const target = width < 480 ? Math.min(this.height, 96) : this.height;
        while (begin < this.items.length) {
            let end = begin, sum = 0, full = false;
            while (end < this.items.length && !full) {
                sum += App.aspect(this.items[end].place);
                end++;
                full = sum * target + (end - begin - 1) * gap >= width;
            }
            /* The last row is as high as the others where it is not full. */
            const height = full ? (width - (end - begin - 1) * gap) / sum : target;
            for (let x = 0, exact = 0, i = begin; i < end; i++) {
                const { thumb, tile, place } = this.items[i];
                exact += App.aspect(place) * height;
                const w = Math.max(1, Math.floor(exact + 1e-6) - x);
                x += w;
                App.fit(thumb, place, w, Math.round(height));
                tile.style.width = w + "px";
            }
            this.lastRow = begin;
            begin = end;
        }
    }

    key(event) {
        const tiles = this.items.map(item => item.tile);
        const at = tiles.indexOf(document.activeElement);
        if (at < 0 || event.ctrlKey || event.altKey || event.metaKey)
            return;
        const to = App.moved(tiles, at, event.key);
        if (to === null)
            return;
        event.preventDefault();
        tiles[at].tabIndex = -1;
        tiles[to].tabIndex = 0;
        tiles[to].focus();
    }
}
App.Gallery = Gallery;

/* The index that a key leads to from `at`, by where elements are; null: none. */
App.moved = (elements, at, key) => {
    if (key === "ArrowRight")
        return Math.min(elements.length - 1, at + 1);
    if (key === "ArrowLeft")
        return Math.max(0, at - 1);
    if (key === "Home")
        return 0;
    if (key === "End")
        return elements.length - 1;
    if (key !== "ArrowDown" && key !== "ArrowUp")
        return null;
    const step = key === "ArrowDown" ? 1 : -1, here = elements[at].getBoundingClientRect();
    let best = at, distance = Infinity, line = null;
    for (let i = at + step; i >= 0 && i < elements.length; i += step) {
        const there = elements[i].getBoundingClientRect();
        if (Math.abs(there.top - here.top) < 2)
            continue;
        if (line === null)
            line = there.top;
        if (Math.abs(there.top - line) > 2)
            break;
        const d = Math.abs(there.left + there.width / 2 - here.left - here.width / 2);
        if (d < distance) {
            distance = d;
            best = i;
        }
    }
    return best;
};

/* Calls more(), which may give a promise, whenever `element` comes near the window, until it is false. */
App.whenNear = (element, more) => {
    let busy = false;
    const done = again => {
        busy = false;
        if (!again) {
            observer.disconnect();
            element.remove();
        }
        return again;
    };
    const step = () => {
        if (busy || !element.isConnected)
            return false;
        const again = more();
        busy = again instanceof Promise;
        return busy ? again.then(done) : done(again);
    };
    const observer = new IntersectionObserver(async entries => {
        if (entries.some(entry => entry.isIntersecting))
            while (element.getBoundingClientRect().top < innerHeight + 800 && await step())
                ;
    }, { rootMargin: "800px" });
    observer.observe(element);
    element.className = "rest";
    element.textContent = "What follows is not printed.";
    /* As far as possible at once: not every browser waits for promises. */
    element.steps = (count, then) => {
        let again = true;
        while (count-- > 0 && again === true)
            again = step();
        if (again instanceof Promise)
            again.then(next => next ? element.steps(count, then) : then());
        then();
    };
};

/* Paper is not scrolled: what would come later comes now, within reason, and with its pictures. */
const PRINTED_STEPS = 50;
addEventListener("beforeprint", () => {
    const finish = () => {
        document.querySelectorAll(".strip").forEach(one => one.layout());
        document.querySelectorAll(".thumb[data-sheet]").forEach(fetchSheet);
    };
    document.documentElement.classList.add("printing");
    document.querySelectorAll(".rest").forEach(one => one.steps(PRINTED_STEPS, finish));
    finish();
});
addEventListener("afterprint", () => document.documentElement.classList.remove("printing"));

App.missing = what => h("p.note", { role: "alert" },
    `${what} could not be loaded: a file of this report is missing. Make it again with clpipe report.`);

/* --- theme ------------------------------------------------------------------------------------- */

const store = {
    get: key => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* for this page only */ } },
};

function showTheme(theme) {
    if (theme)
        document.documentElement.dataset.theme = theme;
    const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const button = document.getElementById("theme");
    button.setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
    button.title = dark ? "Light colours" : "Dark colours";
    button.replaceChildren(svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": true },
        dark ? svg("path", { d: "M10 6a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M16 4l-1.4 1.4M5.4 14.6 4 16" })
            : svg("path", { d: "M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7z" })));
    dispatchEvent(new Event("themechange"));
    return dark;
}

/* --- routes ------------------------------------------------------------------------------------ */

/* What the first two parts of an address name: the argument of their view; null: nothing in this report. */
App.named = async (view, name = "") => {
    const { groups, grouping } = App.summary;
    if (view === "picture" || (view === "map" && name)) {
        const p = await App.find(name);
        return p < 0 ? null : p;
    }
    if (view === "group") {
        const group = groups.find(one => one.size > 0 && App.groupLink(one) === `#/group/${name}`);
        const p = group || grouping !== "clusters" ? -1 : await App.find(name);
        return group ?? (p < 0 ? null : App.group(p));
    }
    return view === "" || view in App.views ? name : null;
};

/* A picture opens above the view of before; what is unknown leads to the overview. */
App.route = async () => {
    const turn = ++App.turn, hash = location.hash || "#/";
    const [view, name] = hash.startsWith("#/") ? hash.slice(2).split("/") : [hash];
    const dialog = document.getElementById("picture");
    let named = null, notice = `This address leads to a ${["picture", "map"].includes(view) ? "picture" : view === "group" ? "group" : "page"} that is not in this report.`;
    try {
        named = await App.named(view, name);
    } catch {
        notice = "The address could not be looked up: a file of this report is missing. Make it again with clpipe report.";
    }
    if (turn !== App.turn)
        return;
    if (named === null) {
        App.notice = notice;
        location.replace("#/");
        return;
    }
    if (view === "picture") {
        if (!App.shownView) {
            const group = App.group(named);
            await App.show(App.groupLink(group), "group", group);
        }
        await App.views.picture(named, dialog);
        return;
    }
    if (dialog.open)
        dialog.close();
    if (App.shownView === hash && !App.notice) {
        App.returnFocus?.focus();
        App.returnFocus = null;
        return;
    }
    await App.show(hash, view || "overview", named);
};

App.show = async (hash, view, named) => {
    const main = document.getElementById("main");
    const first = !App.shownView;
    App.shownView = App.last = hash;
    App.leave?.();
    App.leave = null;
    main.className = `view-${view}`;
    main.replaceChildren();
    if (App.notice)
        main.append(h("div.page.notice", {}, h("p.note", { role: "alert" }, App.notice)));
    App.notice = null;
    for (const link of document.querySelectorAll("#nav a")) {
        if (link.getAttribute("href").split("/")[1] === hash.split("/")[1])
            link.setAttribute("aria-current", "page");
        else
            link.removeAttribute("aria-current");
    }
    scrollTo(0, 0);
    await App.views[view](named, main);
    if (App.shownView !== hash)
        return;
    const heading = main.querySelector("h1");
    document.title = heading && view !== "overview" ? `${heading.textContent} · ${shown(App.summary.title)}` : shown(App.summary.title);
    if (!first && heading) {
        heading.tabIndex = -1;
        heading.focus({ preventScroll: true });
    }
};

App.start = () => {
    const summary = App.summary;
    summary.sheets.first = summary.sheets.strips * summary.sheets.columns * summary.sheets.rows;
    document.getElementById("title").textContent = shown(summary.title);
    const links = [["#/", "Overview"], summary.map && ["#/map", "Map"],
        summary.duplicates && ["#/duplicates", "Duplicates"],
        summary.quality && ["#/quality", "Quality"],
        summary.failed > 0 && ["#/failures", "Failures"]].filter(Boolean);
    document.getElementById("nav").append(...links.map(([href, text]) => h("a", { href }, text)));
    document.getElementById("theme").addEventListener("click", () => {
        const theme = showTheme(document.documentElement.dataset.theme) ? "light" : "dark";
        store.set("clpipe-theme", theme);
        showTheme(theme);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showTheme(document.documentElement.dataset.theme));
    document.querySelector(".skip").addEventListener("click", event => {
        event.preventDefault();
        document.getElementById("main").focus();
    });
    addEventListener("hashchange", App.route);
    addEventListener("keydown", event => {
        if (event.key === "Escape" && !event.defaultPrevented && !document.getElementById("picture").open &&
            App.shownView !== "#/" && !/^(INPUT|SELECT)$/.test(document.activeElement?.tagName))
            location.hash = "#/";
    });
    App.route();
};

showTheme(store.get("clpipe-theme"));
