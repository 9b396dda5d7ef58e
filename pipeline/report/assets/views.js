/* views.js: the first page, a group, a picture, duplicates, quality, failures. */
"use strict";

/* Appends what is there. */
const put = (element, ...children) => element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));

/* --- parts ------------------------------------------------------------------------------------- */

function swatch(group) {
    if (!group.colours.length)
        return null;
    const bar = h("span.swatch", {
        role: "img", title: group.colours.map(([colour, part]) => `${colour} ${share(part, 1)}`).join(", "),
        "aria-label": "Colours: " + group.colours.map(([colour, part]) => `${colour} ${share(part, 1)}`).join(", "),
    });
    for (const [colour, part] of group.colours) {
        const piece = h("span");
        piece.style.backgroundColor = colour;
        piece.style.flexGrow = part;
        bar.append(piece);
    }
    return bar;
}

/* The words of a cluster or of a picture. */
function words(of) {
    return of.words.length ? h("span.words", { title: shares(of.words) }, of.words.map(([word, part], i) =>
        [i ? ", " : "", h("bdi", {}, shown(word)), h("span.n", {}, ` ${Math.round(100 * part)} %`)])) : null;
}

function folders(group, most = 3) {
    if (App.summary.grouping === "folders" || App.summary.folders < 2 || !group.folders.length)
        return null;
    const rest = group.folderCount - Math.min(most, group.folders.length);
    return h("p.folders", {},
        group.folders.slice(0, most).map(([name, n], i) => [i ? ", " : "", h("bdi", {}, shown(name) || "top folder"), h("span.n", {}, ` ${count(n)}`)]),
        rest > 0 ? ` and ${counted(rest, "other")}` : null);
}

/* Sums, largest first, as bars. */
function bars(rows, whole, link) {
    const most = Math.max(...rows.map(([, n]) => n));
    return h("ul.bars", {}, [...rows].sort((a, b) => b[1] - a[1]).map(([name, n]) => {
        const fill = h("span.fill");
        fill.style.width = `${100 * n / most}%`;
        const text = [h("span.name", {}, name), h("span.n", {}, count(n))];
        return h("li", {}, link ? h("a", { href: link(name) }, text, fill) : [text, fill]);
    }));
}

const REASONS = table({
    "unreadable": "could not be read",
    "vanished": "was removed while clpipe ran",
    "changed": "changed while it was read",
    "empty": "has no bytes",
    "unknown-format": "is not an image, whatever its name says",
    "unsupported": "is in a format that this build cannot decode",
    "corrupt": "is damaged",
    "truncated": "ends early",
    "too-large": "is too large",
    "too-many-scans": "has too many scans",
    "timeout": "took too long to decode",
    "out-of-memory": "needs too much memory",
    "decoder-crashed": "crashed its decoder",
});

/* --- the first page ---------------------------------------------------------------------------- */

/* How high pictures on the first page are: as many groups as possible are seen without scrolling, and
 * small thumbnails are not blown up. */
function stripHeight() {
    const n = App.summary.groups.length;
    const height = n <= 3 || (n > 4 && n <= 6) ? 150 : n <= 8 ? 106 : 72;
    return innerWidth < 480 ? 64 : Math.max(72, Math.min(height, App.summary.sheets.size));
}

/* As many pictures of a group as fit its card. */
function strip(group, title = App.groupTitle(group)) {
    const element = h("div.strip", { role: "list", "aria-label": `Pictures of ${title}` });
    const tiles = group.strip.map(([name, w, height, id], i) => {
        const place = App.place(group.cells?.[i] ?? group.cell + i, w, height);
        const tile = App.tile({ id, name, place });
        return { tile, place, item: h("span", { role: "listitem" }, tile) };
    });
    let shownTiles = [];
    const layout = () => {
        const width = element.clientWidth, side = stripHeight(), gap = 5;
        element.style.height = `${side}px`;
        if (!width)
            return;
        let x = 0;
        const fitting = [];
        for (const one of tiles) {
            const w = Math.round(App.aspect(one.place) * side);
            if (fitting.length >= 3 && x + w > width)
                break;
            fitting.push([one, w]);
            x += w + gap;
        }
        /* Where three are too wide, all become smaller; else what is left over is shared. */
        const total = fitting.reduce((sum, [, w]) => sum + w, 0);
        const room = width - gap * (fitting.length - 1);
        const stretch = fitting.length === tiles.length && total < room ? 1 : Math.min(1.35, room / total);
        let exact = 0, used = 0;
        for (const [one, w] of fitting) {
            exact += w * stretch;
            const fitted = Math.floor(exact + 1e-6) - used;
            used += fitted;
            App.fit(one.thumb ??= one.tile.querySelector(".thumb"), one.place, fitted, side);
        }
        if (shownTiles.length !== fitting.length)
            element.replaceChildren(...fitting.map(([one]) => one.item));
        shownTiles = fitting.map(([one]) => one.tile);
    };
    new ResizeObserver(layout).observe(element);
    element.layout = layout;
    element.addEventListener("keydown", event => {
        const at = shownTiles.indexOf(document.activeElement), to = at < 0 ? null : App.moved(shownTiles, at, event.key);
        if (to === null || event.key === "ArrowUp" || event.key === "ArrowDown")
            return;
        event.preventDefault();
        shownTiles[to].focus();
    });
    if (tiles.length)
        tiles[0].tile.tabIndex = 0;
    return element;
}

function card(group) {
    const title = App.groupTitle(group);
    return h("section.card", { "aria-labelledby": `group-${group.label}` },
        h("div.head", {},
            h("h2", { id: `group-${group.label}` }, group.size ? h("a", { href: App.groupLink(group) }, title) : title),
            words(group),
            h("span.size", {}, counted(group.size, "picture"), h("span.part", {}, ` · ${share(group.size, App.summary.images)}`)),
            swatch(group)),
        folders(group),
        group.size ? strip(group) : h("p.folders", {}, "No pictures."));
}

/* Appends what is made of the items, as far as it is looked at. */
function grow(list, sentinel, items, make) {
    let next = 0;
    const more = () => {
        list.append(...items.slice(next, next + 24).map(make));
        next += 24;
        return next < items.length;
    };
    more();
    App.whenNear(sentinel, more);
}

/* The clusters of the coarsest level, largest first; below each those of the next finer one, down to groups. */
function tree(summary) {
    const bySize = (a, b) => b.size - a.size || a.number - b.number;
    let below = summary.groups.filter(group => group.label >= 0);
    summary.levels.forEach(({ k, parents }, i) => {
        const nodes = Array.from({ length: k }, (none, number) => ({ level: i + 2, number, size: 0, below: [] }));
        for (const one of below) {
            const node = nodes[parents[i ? one.number : one.label]];
            node.below.push(one);
            node.size += one.size;
        }
        nodes.forEach(node => i && node.below.sort(bySize));
        below = nodes.filter(node => node.below.length).sort(bySize);
    });
    return below;
}

/* A picture of each of the clusters below. */
function faces(node) {
    const first = one => one.below ? first(one.below[0]) : one;
    const groups = node.below.slice(0, 14).map(first).filter(group => group.strip.length);
    return { strip: groups.map(group => group.strip[0]), cells: groups.map(group => group.cell) };
}

/* A cluster of a level that is opened to those below it, and stays so for the next look at the page. */
function branch(node) {
    const key = `${node.level}-${node.number}`, below = h("div.below"), list = h("div.cards.few"), sentinel = h("div");
    const title = `Cluster ${count(node.number)} of level ${node.level}`;
    const button = h("button", { type: "button", "aria-expanded": "false" }, title);
    const show = open => {
        App.opened[open ? "add" : "delete"](key);
        button.setAttribute("aria-expanded", open);
        below.hidden = !open;
        if (open && !below.children.length) {
            below.append(list, sentinel);
            grow(list, sentinel, node.below, one => one.below ? branch(one) : card(one));
        }
    };
    button.addEventListener("click", () => show(below.hidden));
    const element = h("section.card.branch", { "aria-labelledby": `level-${key}` },
        h("div.head", {},
            h("h2", { id: `level-${key}` }, button),
            h("span.size", {}, `${counted(node.below.length, "cluster")} · ${counted(node.size, "picture")}`, h("span.part", {}, ` · ${share(node.size, App.summary.images)}`))),
        strip(faces(node), title), below);
    below.hidden = true;
    if (App.opened.has(key))
        queueMicrotask(() => show(true));
    return element;
}
App.opened = new Set();

App.views.overview = (none, main) => {
    const summary = App.summary;
    const what = summary.grouping === "none" ? null : [" in ", h("strong", {}, App.groupWord())];
    const branches = summary.levels.length ? tree(summary) : [];
    const rest = branches.length ? summary.groups.filter(group => group.label < 0) : summary.groups;
    const cards = h(summary.groups.length <= 4 || branches.length ? "div.cards.few" : "div.cards");
    const sentinel = h("div");
    put(main, h("div.page", {},
        h("div.lead", {},
            h("h1", {}, h("strong", {}, counted(summary.images, "picture")), what),
            summary.failed ? h("a.failed", { href: "#/failures" }, `${counted(summary.failed, "file")} failed`) : null),
        h("div.columns", {}, h("div", {}, cards, sentinel), about(summary))));
    grow(cards, sentinel, [...branches, ...rest], one => one.below ? branch(one) : card(one));
};

function about(summary) {
    const clustering = summary.clustering;
    const [least, median, most] = summary.sides;
    const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
    const sources = summary.sources.filter(([, n]) => n > 0);
    return h("aside.about", { "aria-label": "About these pictures" },
        h("section", {}, h("h2", {}, "What was read"),
            h("dl", {},
                fact("Pictures", count(summary.images)),
                fact("Size", size(summary.bytes)),
                fact("Pixels", `${fine(summary.pixels / 1e6)} million`),
                fact("Longest side", least === most ? `${count(most)} pixels` : [`${count(median)} `, h("span.n", {}, `(${count(least)} to ${count(most)})`)]),
                sources.length === 1 && sources[0][0] ? fact("Source", h("bdi", {}, shown(sources[0][0]))) : null,
                summary.folders > 1 ? fact("Folders", count(summary.folders)) : null,
                summary.skipped ? fact("Skipped", counted(summary.skipped, "file that is not an image", "files that are not images")) : null),
            sources.length > 1 ? [h("h3", {}, "Sources"), bars(sources.map(([name, n]) => [shown(name) || "files", n]))] : null,
            h("h3", {}, "Formats"), bars(summary.formats.map(([name, n]) => [name.toUpperCase(), n]))),
        summary.failed ? h("section", {}, h("h2", {}, "What failed"),
            bars(summary.reasons, summary.failed, name => `#/failures/${name}`)) : null,
        clustering ? h("section", {}, h("h2", {}, "How it was grouped"),
            h("dl", {},
                fact("By", h("code", {}, clustering.feature)),
                fact("Distance", clustering.metric),
                fact("Iterations", `${count(clustering.iterations)}${clustering.converged ? ", converged" : ""}`),
                clustering.agreement ? fact("Purity", h("span", { title: "The share of pictures whose folder is the most common one of their cluster" },
                    `${fixed(clustering.agreement.purity)} against ${counted(clustering.agreement.folders, "folder")}`)) : null,
                clustering.agreement ? fact("NMI, ARI", `${fixed(clustering.agreement.nmi)}, ${fixed(clustering.agreement.ari)}`) : null,
                fact("Name", h("code", {}, clustering.name)),
                clustering.others.length ? fact("Also stored", clustering.others.map((name, i) => [i ? ", " : "", h("code", {}, name)])) : null),
            clustering.sweep ? sweep(clustering) : null) : h("section", {}, h("h2", {}, "Not clustered"),
            h("p", {}, "This file has no clusters. To get some: ", h("code", {}, "clpipe cluster FILE.h5 -k 10"), ".")),
        (summary.notes ?? []).length ? h("section", {}, h("h2", {}, "Left out"), summary.notes.map(note => h("p", {}, note))) : null,
        h("p.made", {}, `Made by clpipe ${summary.version} from a file of ${summary.created.slice(0, 10)}.`));
}

/* --- the chart of k ---------------------------------------------------------------------------- */

const MEASURES = [
    ["silhouette", "Silhouette", 1], ["simplified_silhouette", "Simplified silhouette", 1],
    ["davies_bouldin", "Davies-Bouldin", -1], ["calinski_harabasz", "Calinski-Harabasz", 1],
    ["inertia", "Inertia", 0], ["nmi", "Folders (NMI)", 1],
];

function sweep(clustering) {
    const { values, measure, reason } = clustering.sweep;
    const defined = MEASURES.filter(([key]) => values.some(value => Number.isFinite(value[key])));
    defined.sort(([a], [b]) => (b === measure) - (a === measure));
    return h("div.sweep", {},
        h("h3", {}, `Why k = ${count(clustering.k)}`),
        reason ? h("p", {}, `${reason.replace(/^k = \d+: /, "").replace(/^./, c => c.toUpperCase())}.`) : null,
        defined.map(([key, title, better], i) => panel(values, key, title, better, clustering.k, i === 0)),
        h("details", {}, h("summary", {}, "The numbers"),
            h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Measures of each k" },
                h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "k"), defined.map(([, title]) => h("th", { scope: "col" }, title)))),
                    h("tbody", {}, values.map(value => h("tr", {}, h("th", { scope: "row" }, count(value.k)),
                        defined.map(([key]) => h("td", {}, fine(value[key], 4))))))))));
}

function panel(values, key, title, better, k, large) {
    const width = 260, height = large ? 92 : 40, left = 4, right = width - 4, top = 6;
    const points = values.filter(value => Number.isFinite(value[key]));
    const numbers = points.map(value => value[key]);
    const low = Math.min(...numbers), high = Math.max(...numbers);
    const x = value => values.length < 2 ? width / 2 : left + (right - left) * (value.k - values[0].k) / (values.at(-1).k - values[0].k);
    const y = value => top + (height - 2 * top) * (high > low ? (high - value[key]) / (high - low) : 0.5);
    const best = points.reduce((a, b) => (better < 0 ? b[key] < a[key] : b[key] > a[key]) ? b : a);
    const chosen = points.find(value => value.k === k);
    const text = better === 0 ? `from ${fine(high)} to ${fine(low)}` : `${better < 0 ? "lowest" : "highest"} ${fine(best[key])} at ${count(best.k)}`;
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} of each k: ${text}` },
        svg("path", { class: "grid", d: `M${left} ${height - 1}H${right}` }));
    if (chosen)
        chart.append(svg("path", { class: "chosen", d: `M${x(chosen)} 0V${height}` }));
    chart.append(svg("polyline", { points: points.map(value => `${x(value).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
    for (const value of points) {
        const dot = svg("circle", { cx: x(value).toFixed(1), cy: y(value).toFixed(1), r: value === chosen ? 4 : 2, class: value === chosen ? "chosen" : "" });
        dot.append(svg("title", {}, `k = ${value.k}: ${fine(value[key], 4)}`));
        chart.append(dot);
    }
    return h("figure", {}, h("figcaption", {}, h("span", {}, title), h("span.n", {}, text)), chart,
        large ? h("p.axis", { "aria-hidden": "true" }, h("span", {}, `k ${count(values[0].k)}`), h("span", {}, count(values.at(-1).k))) : null);
}

/* --- a group ----------------------------------------------------------------------------------- */

App.views.group = async (group, main) => {
    const groups = App.summary.groups, at = groups.indexOf(group), clustered = App.summary.grouping === "clusters" && group.label >= 0;
    const beside = (to, text, rel) => groups[to]?.size ? h("a.button", { href: App.groupLink(groups[to]), rel }, text) : null;
    /* Small thumbnails are not blown up. */
    const height = Math.min(128, Math.round(App.summary.sheets.size * 1.25));
    const gallery = new App.Gallery(height, `Pictures of ${App.groupTitle(group)}`);
    const outliers = new App.Gallery(height, "Outliers");
    const sentinel = h("div");
    const far = group.outliers ? h("section.outliers", { hidden: true },
        h("h2", {}, counted(group.outliers, "outlier")),
        h("p", {}, "Much farther from the centre than the others of this cluster."), outliers.element) : null;
    put(main, h("div.page", {},
        h("nav.crumbs", { "aria-label": "Groups" }, h("a", { href: "#/" }, "Overview"),
            h("span.grow"), beside(at - 1, "← Larger", "prev"), beside(at + 1, "Smaller →", "next")),
        h("div.lead.group", {}, h("h1", {}, App.groupTitle(group)), words(group),
            h("p", {}, `${counted(group.size, "picture")}, ${share(group.size, App.summary.images)} of all`,
                clustered ? ". The nearest to the centre come first." : "."),
            swatch(group), folders(group)),
        gallery.element, far, sentinel));
    let next = group.first;
    const end = group.first + group.size, border = end - group.outliers;
    const add = pictures => {
        const target = next < border ? gallery : outliers;
        if (target === outliers)
            far.hidden = false;
        target.add(pictures.map(one => [App.tile(one), one.place]));
        next += pictures.length;
        return next < end;
    };
    const more = () => {
        const limit = Math.min(end, next < border ? Math.min(border, next + 120) : next + 120);
        const numbers = Array.from({ length: limit - next }, (_, i) => next + i), pictures = numbers.map(App.record);
        return pictures.every(Boolean) ? add(pictures) : Promise.all(numbers.map(App.picture)).then(add, () => {
            sentinel.before(App.missing("Some pictures"));
            return false;
        });
    };
    if (await more())
        App.whenNear(sentinel, more);
};

/* --- a picture --------------------------------------------------------------------------------- */

App.views.picture = async (p, dialog) => {
    const summary = App.summary;
    /* The picture `step` further in the order of the pages takes the place of this one. */
    const go = async step => {
        const to = App.onPage + step;
        if (to >= 0 && to < summary.images)
            location.replace(App.pictureLink(await App.picture(to)));
    };
    if (!dialog.open) {
        App.returnFocus = document.activeElement;
        dialog.onclose = () => {
            if (location.hash.startsWith("#/picture/"))
                location.hash = App.last;
        };
        dialog.onclick = event => {
            if (event.target === dialog)
                dialog.close();
        };
        dialog.onkeydown = event => {
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (!step || event.target.closest(".gallery") || event.altKey || event.ctrlKey || event.metaKey)
                return;
            event.preventDefault();
            go(step);
        };
        dialog.showModal();
    }
    App.onPage = p;
    let one, beside;
    try {
        one = await App.picture(p);
        beside = await Promise.all([p - 1, p + 1].map(to => to < 0 || to >= summary.images ? null : App.picture(to)));
    } catch {
        dialog.replaceChildren(h("h2", { id: "picture-name" }, "Picture"), App.missing("This picture"),
            h("button.button", { type: "button", onclick: () => dialog.close() }, "Close"));
        return;
    }
    if (App.onPage !== p)
        return;
    const group = App.group(p), rank = p - group.first, clustered = summary.grouping === "clusters" && group.label >= 0;
    const keep = document.activeElement?.dataset?.keep;
    const step = (to, text, label) => !to ? h("span.step")
        : h("a.step", { href: App.pictureLink(to), "aria-label": label, "data-keep": text,
            onclick: event => { event.preventDefault(); location.replace(App.pictureLink(to)); } }, text);
    const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
    const close = h("button.icon", { type: "button", "aria-label": "Close", title: "Close (Escape)", onclick: () => dialog.close() },
        svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": true }, svg("path", { d: "M4 4l12 12M16 4L4 16" })));
    const similar = h("section.similar", {}, h("h3", {}, "Most similar"));
    dialog.replaceChildren(
        h("div.top", {}, h("h2", { id: "picture-name", tabindex: -1 }, h("bdi", {}, base(one.name))), close),
        h("div.body", {},
            h("div.large", {}, step(beside[0], "‹", "Previous picture"), large(one), step(beside[1], "›", "Next picture")),
            h("dl", {},
                folder(one.name) ? fact("Folder", h("bdi", {}, folder(one.name))) : null,
                fact("Size", `${count(one.width)} × ${count(one.height)} pixels`),
                fact("File", `${one.format.toUpperCase()}, ${size(one.bytes)}`),
                summary.sources.length > 1 ? fact("Source", h("bdi", {}, shown(summary.sources[one.source]?.[0] ?? ""))) : null,
                fact(summary.grouping === "folders" ? "Group" : "Cluster", h("a", { href: App.groupLink(group), onclick: () => dialog.close() }, App.groupName(group)),
                    clustered ? `, ${count(rank + 1)} of ${count(group.size)} from the centre` : ""),
                one.words.length ? fact("Looks like", words(one)) : null,
                clustered ? fact("Distance", digits(one.distance)) : null,
                fact("Row", count(one.row)),
                summary.map ? fact("Map", h("a", { href: `#/map/${one.id}` }, "Show it on the map")) : null,
                one.link ? fact("Original", h("a", { href: one.link, target: "_blank", rel: "noopener" }, "Open the file"))
                    : one.link === null ? fact("Original", "not linked: gone, changed since it was read, or in an archive") : null)),
        similar);
    dialog.scrollTop = 0;
    (keep && dialog.querySelector(`[data-keep="${keep}"]`) || dialog.querySelector("h2")).focus({ preventScroll: true });
    document.title = `${base(one.name)} · ${shown(summary.title)}`;
    await mostSimilar(similar, p);
};

/* As large as the window and the thumbnail allow; the file itself where it is linked. */
function large(one) {
    if (one.link) {
        const image = h("img.original", { src: one.link, alt: base(one.name) });
        image.addEventListener("error", () => image.replaceWith(large({ ...one, link: null })));
        return image;
    }
    const thumb = App.thumb(one.place, base(one.name));
    if (!one.place.w) {
        App.fit(thumb, one.place, 240, 180);
        thumb.append(h("span", {}, "No thumbnail: the file was gone or had changed when this report was made."));
        return thumb;
    }
    const scale = Math.min((Math.min(innerWidth, 900) - 160) / one.place.w, 0.38 * innerHeight / one.place.h, 336 / App.summary.sheets.size);
    App.fit(thumb, one.place, Math.round(one.place.w * Math.max(scale, 0.5)), Math.round(one.place.h * Math.max(scale, 0.5)));
    return thumb;
}

async function mostSimilar(section, p) {
    const { similar, chunk } = App.summary;
    if (!similar) {
        section.append(h("p", {}, "This report was made without similar pictures."));
        return;
    }
    let found;
    try {
        found = (await App.load("similar", Math.floor(p / chunk)))[p % chunk];
    } catch {
        section.append(App.missing("Similar pictures"));
        return;
    }
    if (!found.length) {
        section.append(h("p", {}, "This picture has no values by which it can be compared."));
        return;
    }
    const pictures = await Promise.all(found.map(([other]) => App.picture(other)));
    if (App.onPage !== p)
        return;
    const gallery = new App.Gallery(92, "Most similar pictures");
    section.append(h("p.by", {}, "By ", h("code", {}, similar.feature), ", nearest first."), gallery.element);
    gallery.add(pictures.map((one, i) => {
        const tile = App.tile(one, h("span.caption", {}, found[i][1] === 0 ? "the same" : digits(found[i][1], 3)));
        tile.title += `, at distance ${digits(found[i][1])}`;
        return [tile, one.place];
    }));
}

/* --- duplicates -------------------------------------------------------------------------------- */

const KINDS = table({
    bytes: ["Same file", "The files have the same bytes."],
    pixels: ["Same picture", "The files differ, but every pixel is the same."],
    near: ["Nearly the same", "Similar codes: scaled, re-encoded, cropped, mirrored or brightened, or merely similar."],
});

/* What makes a member a copy of the first. */
const relation = ([, kind, distance, mirrored]) => kind === "near"
    ? (distance ? `${counted(distance, "bit")} of the code differ${distance === 1 ? "s" : ""}` : "the same code") + (mirrored ? ", mirrored" : "")
    : kind === "pixels" ? "every pixel the same" : "the same bytes";

App.views.duplicates = async (kind, main) => {
    const about = App.summary.duplicates;
    const page = h("div.page");
    main.append(page);
    if (!about) {
        put(page, h("h1", {}, "Duplicates"), h("p", {}, "This report was made without duplicates."));
        return;
    }
    let groups;
    try {
        groups = await App.load("duplicates");
    } catch {
        put(page, h("h1", {}, "Duplicates"), App.missing("The groups"));
        return;
    }
    const kinds = Object.keys(KINDS).filter(name => about[name]);
    const wanted = KINDS[kind] ? groups.filter(group => group.kind === kind) : groups;
    const extra = groups.reduce((sum, group) => sum + group.members.length - 1, 0);
    put(page, h("h1", {}, "Duplicates"),
        h("p", {}, groups.length ? `${counted(groups.length, "group")} of pictures with the same bytes or similar codes: ${counted(extra, "picture")} in addition to one of each.` : "No picture is a copy of another."),
        h("p.by", {}, "Pictures count as nearly the same where their codes differ in at most ", count(about.limit), " of 256 bits. Different pages of text, forms or frames of a film do, too: only ",
            h("code", {}, "clpipe duplicates"), " compares the pictures themselves, tells these apart, and finds more."),
        groups.length && kinds.length > 1 ? h("nav.chips", { "aria-label": "Kinds" },
            [["", "All", groups.length], ...kinds.map(name => [name, KINDS[name][0], about[name]])].map(([name, text, n]) =>
                h("a", { href: name ? `#/duplicates/${name}` : "#/duplicates", "aria-current": (KINDS[kind] ? kind : "") === name ? "true" : null }, text, h("span.n", {}, count(n))))) : null);
    const list = h("div.groups"), sentinel = h("div");
    put(page, list, sentinel);
    let next = 0;
    const more = async () => {
        const some = wanted.slice(next, next + 20);
        for (const group of some) {
            let pictures;
            try {
                pictures = await Promise.all(group.members.slice(0, 60).map(([p]) => App.picture(p)));
            } catch {
                list.append(App.missing("A group"));
                continue;
            }
            const gallery = new App.Gallery(110, KINDS[group.kind][0]);
            list.append(h("section.card", {}, h("div.head", {},
                h("h2", {}, KINDS[group.kind][0]), h("span.size", {}, counted(group.members.length, "picture"), h("span.part", {}, ` · ${KINDS[group.kind][1]}`))),
            gallery.element,
            h("ul.paths", {}, pictures.map((one, i) => h("li", {}, h("bdi", {}, shown(one.name)),
                h("span.n", {}, ` ${count(one.width)} × ${count(one.height)}, ${size(one.bytes)}${i ? `, ${relation(group.members[i])}` : ""}`)))),
            group.members.length > pictures.length ? h("p", {}, `and ${count(group.members.length - pictures.length)} more`) : null));
            gallery.add(pictures.map(one => [App.tile(one), one.place]));
        }
        next += 20;
        return next < wanted.length;
    };
    await more();
    App.whenNear(sentinel, more);
};

/* --- quality ------------------------------------------------------------------------------------ */

App.views.quality = async (flag, main) => {
    const about = App.summary.quality ?? {}, page = h("div.page"), names = Object.keys(about).filter(name => about[name]);
    const chosen = names.includes(flag) ? flag : names[0];
    put(main, page);
    put(page, h("h1", {}, "Quality"),
        h("p", {}, names.length ? "Pictures whose numbers suggest a flaw; the thresholds are in clpipe's documentation." : "No picture has a flag."),
        names.length ? h("nav.chips", { "aria-label": "Flags" }, names.map(name =>
            h("a", { href: `#/quality/${name}`, "aria-current": name === chosen ? "true" : null }, name.replace("-", " "), h("span.n", {}, count(about[name]))))) : null);
    if (!names.length)
        return;
    const gallery = new App.Gallery(140, chosen.replace("-", " ")), sentinel = h("div");
    put(page, gallery.element, sentinel);
    let next = 0;
    const more = async () => {
        try {
            const all = (await App.load("quality"))[chosen], some = all.slice(next, next + 60);
            const pictures = await Promise.all(some.map(App.picture));
            gallery.add(pictures.map(one => [App.tile(one), one.place]));
            next += 60;
            return next < all.length;
        } catch {
            page.append(App.missing("The pictures"));
            return false;
        }
    };
    await more();
    App.whenNear(sentinel, more);
};

/* --- failures ---------------------------------------------------------------------------------- */

App.views.failures = async (reason, main) => {
    const { failed, chunk, reasons } = App.summary;
    const page = h("div.page");
    main.append(page);
    put(page, h("h1", {}, "Failures"), h("p", {}, failed ? `${counted(failed, "file")} failed.` : "No file failed."));
    if (!failed)
        return;
    let rows;
    try {
        rows = (await Promise.all(Array.from({ length: Math.ceil(failed / chunk) }, (_, i) => App.load("failures", i)))).flat();
    } catch {
        put(page, App.missing("The table"));
        return;
    }
    const state = { reason: reasons.some(([name]) => name === reason) ? reason : "", text: "", column: 0, down: false };
    const body = h("tbody"), told = h("p.told", { role: "status" });
    const select = h("select", { id: "reason", onchange: () => { state.reason = select.value; show(); } },
        h("option", { value: "" }, "all reasons"), reasons.map(([name, n]) => h("option", { value: name }, `${name} (${count(n)})`)));
    select.value = state.reason;
    const input = h("input", { id: "filter", type: "search", placeholder: "Part of a name or message", oninput: () => { state.text = input.value.toLowerCase(); show(); } });
    const columns = [["File", 0], ["Reason", 1], ["Message", 2], ["Size", 3]];
    const heads = columns.map(([text, i]) => h("th", { scope: "col" }, h("button", { type: "button", onclick: () => {
        state.down = state.column === i && !state.down;
        state.column = i;
        show();
    } }, text, h("span.arrow", { "aria-hidden": "true" }))));
    let wanted = [], next = 0;
    const more = () => {
        body.append(...wanted.slice(next, next + 200).map(([name, why, message, bytes]) => h("tr", {},
            h("td.file", {}, h("bdi", {}, shown(name))), h("td", {}, h("span.reason", {}, why), h("span.why", {}, REASONS[why] ?? "")),
            h("td.message", {}, shown(message)), h("td.n", {}, size(bytes)))));
        next += 200;
        return next < wanted.length;
    };
    const collator = new Intl.Collator("en", { numeric: true });
    const show = () => {
        wanted = rows.filter(([name, why, message]) => (!state.reason || why === state.reason) &&
            (!state.text || name.toLowerCase().includes(state.text) || message.toLowerCase().includes(state.text)));
        const sign = state.down ? -1 : 1, by = state.column;
        wanted.sort((a, b) => sign * (by === 3 ? a[3] - b[3] : collator.compare(a[by], b[by])));
        heads.forEach((head, i) => {
            if (i === by)
                head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
            else
                head.removeAttribute("aria-sort");
        });
        told.textContent = wanted.length === rows.length ? "" : `${count(wanted.length)} of ${count(rows.length)}`;
        body.replaceChildren();
        next = 0;
        page.querySelector(".rest")?.remove();
        if (more()) {
            const again = h("div");
            put(page, again);
            App.whenNear(again, more);
        }
    };
    put(page, h("form.filters", { onsubmit: event => event.preventDefault() },
        h("label", { for: "filter" }, "Find"), input, h("label", { for: "reason" }, "Reason"), select, told),
    h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Files that failed" }, h("table.failures", {},
        h("thead", {}, h("tr", {}, heads)), body)));
    show();
};
