/* map.js: all pictures in two dimensions, similar ones close together. */
"use strict";

const HUES = ["#3b78d8", "#e0803a", "#3a9a6b", "#c9475b", "#8a63c9", "#8c6a4f", "#d16fb3", "#7a7f87", "#a9a02f", "#2fa3b5"];
App.colour = i => HUES[i] ?? `hsl(${(i * 137.508) % 360} 55% ${i % 2 ? 48 : 60}%)`;

/* Pictures in view up to which thumbnails are drawn, and their size. */
const THUMBS_BELOW = 2500, THUMB = 58, SHEETS_AT_ONCE = 32;

App.views.map = async (wanted, main) => {
    const summary = App.summary, groups = summary.groups;
    const page = h("div.page.wide");
    main.append(page);
    page.append(h("h1", {}, "Map"));
    if (!summary.map) {
        page.append(h("p", {}, "This report was made without a map."), ...summary.notes.filter(note => note.includes("the map")).map(note => h("p", {}, note)));
        return;
    }
    page.append(h("p", {}, "Similar pictures lie close together. Drag to move, scroll or pinch to zoom, click a picture to open it."));
    let data;
    try {
        data = await App.load("map");
    } catch {
        page.append(App.missing("The map"));
        return;
    }
    if (!page.isConnected)
        return;
    const open = async p => { location.hash = App.pictureLink(await App.picture(p)); };
    const canvas = h("canvas", { tabindex: 0, role: "application",
        "aria-label": `Map of ${counted(summary.images, "picture")}. Arrow keys move, plus and minus zoom, 0 shows all, Enter opens the picture in the middle. The same pictures are in the lists of the overview.` });
    const tip = h("div.tip", { hidden: true, role: "status" });
    const button = (label, text, act) => h("button.icon", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const list = h("ul", { "aria-label": "Groups" }), rest = h("div"), legend = h("div.legend", {}, groups.length > 1 ? h("h2", {}, App.groupWord()) : null, list, rest);
    const more = () => {
        const from = list.children.length;
        list.append(...groups.slice(from, from + 2000).map((group, j) => {
            const i = from + j, dot = h("span.dot");
            dot.style.backgroundColor = App.colour(i);
            return h("li", {}, h("button", { type: "button", "aria-pressed": String(i === only), onclick: () => {
                only = only === i ? -1 : i;
                list.querySelectorAll("button").forEach((one, at) => one.setAttribute("aria-pressed", String(at === only)));
                draw();
            } }, dot, h("span", {}, App.groupName(group)), h("span.n", {}, count(group.size))));
        }));
        return list.children.length < groups.length;
    };
    page.append(h("div.map", {}, h("div.stage", {}, canvas, tip,
        h("div.zoom", {}, button("Zoom in", "+", () => zoom(1.5)), button("Zoom out", "−", () => zoom(1 / 1.5)), button("Show all", "⤢", () => all()))),
    groups.length > 1 ? legend : null));

    const n = summary.images, X = data.x, Y = data.y, of = new Uint16Array(n), aspect = new Map();
    groups.forEach((group, i) => of.fill(Math.min(i, 65535), group.first, group.first + group.size));
    const context = canvas.getContext("2d");
    const sheets = new Map();
    let width = 0, height = 0, ratio = 1, scale = 1, cx = 32768, cy = 32768, only = -1, hover = -1, pending = false, winners = [];
    if (more())
        App.whenNear(rest, more);
    const fitted = () => Math.min((width - 80) / Math.max(1, data.width), (height - 80) / Math.max(1, data.height));
    const sx = p => (X[p] - cx) * scale + width / 2, sy = p => (Y[p] - cy) * scale + height / 2;

    function draw() {
        if (pending)
            return;
        pending = true;
        requestAnimationFrame(() => {
            pending = false;
            if (canvas.isConnected)
                paint();
        });
    }

    /* Pictures that do not cover each other: the first of those that would, nearest to their centre. */
    function choose(visible) {
        const step = THUMB + 4, kept = [], cells = new Map();
        for (const p of visible) {
            if (only >= 0 && of[p] !== only)
                continue;
            const x = X[p] * scale, y = Y[p] * scale, column = Math.floor(x / step), row = Math.floor(y / step);
            let free = true;
            for (let dx = -1; dx <= 1 && free; dx++)
                for (let dy = -1; dy <= 1 && free; dy++)
                    for (const [ox, oy] of cells.get((column + dx) * 1e6 + row + dy) ?? [])
                        free &&= Math.abs(ox - x) >= step || Math.abs(oy - y) >= step;
            if (!free)
                continue;
            kept.push([p, sx(p), sy(p)]);
            const key = column * 1e6 + row;
            if (cells.has(key))
                cells.get(key).push([x, y]);
            else
                cells.set(key, [[x, y]]);
        }
        return kept;
    }

    function sheetOf(place) {
        let image = sheets.get(place.sheet);
        if (!image) {
            if ([...sheets.values()].filter(one => !one.complete).length >= SHEETS_AT_ONCE)
                return null;
            image = new Image();
            image.onload = draw;
            image.src = App.sheet(place.sheet);
            sheets.set(place.sheet, image);
            if (sheets.size > 2 * SHEETS_AT_ONCE)
                sheets.delete(sheets.keys().next().value);
        }
        return image.complete && image.naturalWidth ? image : null;
    }

    function paintThumb(p, x, y) {
        const chunk = Math.floor(p / summary.chunk), images = App.data.get("images" + chunk);
        if (!images) {
            App.load("images", chunk).then(draw, () => {});
            return;
        }
        const w = images.w[p % summary.chunk], tall = images.h[p % summary.chunk];
        if (!w)
            return;
        const place = App.place(summary.sheets.first + p, w, tall), image = sheetOf(place);
        const fit = THUMB / Math.max(w, tall), dw = w * fit, dh = tall * fit;
        context.fillStyle = App.colour(of[p]);
        context.fillRect(x - dw / 2 - 1.5, y - dh / 2 - 1.5, dw + 3, dh + 3);
        if (image)
            context.drawImage(image, place.x, place.y, w, tall, x - dw / 2, y - dh / 2, dw, dh);
        if (p === hover) {
            context.lineWidth = 3;
            context.strokeStyle = App.colour(of[p]);
            context.strokeRect(x - dw / 2 - 2, y - dh / 2 - 2, dw + 4, dh + 4);
        }
    }

    function paint() {
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        const visible = [], margin = THUMB, dot = Math.max(1.2, Math.min(4, 60 / Math.sqrt(n) * Math.sqrt(scale / fitted()))), style = getComputedStyle(canvas);
        const faded = style.getPropertyValue("--line");
        for (let p = 0; p < n; p++) {
            const x = sx(p), y = sy(p);
            if (x > -margin && y > -margin && x < width + margin && y < height + margin)
                visible.push(p);
        }
        let last = -2;
        for (const p of visible) {
            const group = only >= 0 && of[p] !== only ? -1 : of[p];
            if (group !== last)
                context.fillStyle = group < 0 ? faded : App.colour(group);
            last = group;
            context.fillRect(sx(p) - dot, sy(p) - dot, 2 * dot, 2 * dot);
        }
        winners = visible.length <= THUMBS_BELOW ? choose(visible) : [];
        for (const [p, x, y] of winners)
            paintThumb(p, x, y);
        if (mark >= 0) {
            context.lineWidth = 3;
            context.strokeStyle = style.getPropertyValue("--accent");
            context.beginPath();
            context.arc(sx(mark), sy(mark), THUMB * 0.72, 0, 7);
            context.stroke();
        }
        if (document.activeElement === canvas && keyboard) {
            context.lineWidth = 1.5;
            context.strokeStyle = style.getPropertyValue("--text");
            context.beginPath();
            context.moveTo(width / 2 - 9, height / 2);
            context.lineTo(width / 2 + 9, height / 2);
            context.moveTo(width / 2, height / 2 - 9);
            context.lineTo(width / 2, height / 2 + 9);
            context.stroke();
        }
    }

    /* The picture at a place of the screen: a thumbnail, else the nearest point. */
    function at(x, y, reach) {
        for (let i = winners.length - 1; i >= 0; i--)
            if (Math.abs(winners[i][1] - x) <= THUMB / 2 && Math.abs(winners[i][2] - y) <= THUMB / 2)
                return winners[i][0];
        let best = -1, distance = reach * reach;
        for (let p = 0; p < n; p++) {
            const dx = sx(p) - x, dy = sy(p) - y, d = dx * dx + dy * dy;
            if (d < distance) {
                distance = d;
                best = p;
            }
        }
        return best;
    }

    async function say(p, x, y) {
        if (p < 0) {
            tip.hidden = true;
            return;
        }
        const one = await App.picture(p).catch(() => null);
        if (!one || hover !== p)
            return;
        const thumb = App.thumb(one.place, "");
        const fit = Math.min(120 / Math.max(one.place.w, one.place.h, 1), 1);
        App.fit(thumb, one.place, Math.max(40, one.place.w * fit), Math.max(40, one.place.h * fit));
        tip.replaceChildren(thumb, h("span", {}, h("bdi", {}, base(one.name)), h("span.n", {}, App.groupName(App.group(p)))));
        tip.hidden = false;
        tip.style.left = `${Math.min(x + 14, width - tip.offsetWidth - 6)}px`;
        tip.style.top = `${y + 14 + tip.offsetHeight > height ? y - tip.offsetHeight - 10 : y + 14}px`;
    }

    function zoom(factor, x = width / 2, y = height / 2) {
        const to = Math.max(fitted() * 0.5, Math.min(fitted() * 400, scale * factor));
        cx += (x - width / 2) * (1 / scale - 1 / to);
        cy += (y - height / 2) * (1 / scale - 1 / to);
        scale = to;
        draw();
    }

    function all() {
        scale = fitted();
        cx = data.width / 2;
        cy = data.height / 2;
        draw();
    }

    let mark = -1, keyboard = false;
    const pointers = new Map();
    let moved = 0, apart = 0;
    const place = event => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", event => {
        event.preventDefault();
        zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...place(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => {
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        moved = 0;
        keyboard = false;
        tip.hidden = true;
        if (pointers.size === 2) {
            const [a, b] = [...pointers.values()];
            apart = Math.hypot(a[0] - b[0], a[1] - b[1]);
        }
    });
    canvas.addEventListener("pointermove", event => {
        const now = place(event), before = pointers.get(event.pointerId);
        if (!before) {
            const p = at(...now, 12);
            canvas.style.cursor = p >= 0 ? "pointer" : "grab";
            if (p !== hover) {
                hover = p;
                say(p, ...now);
                draw();
            }
            return;
        }
        pointers.set(event.pointerId, now);
        moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
        if (pointers.size === 2) {
            const [a, b] = [...pointers.values()], distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
            zoom(distance / Math.max(1, apart), (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
            apart = distance;
            return;
        }
        cx -= (now[0] - before[0]) / scale;
        cy -= (now[1] - before[1]) / scale;
        draw();
    });
    const up = event => {
        if (pointers.delete(event.pointerId) && event.type === "pointerup" && moved < 5 && pointers.size === 0) {
            const p = at(...place(event), 14);
            if (p >= 0)
                open(p);
        }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => {
        hover = -1;
        tip.hidden = true;
        draw();
    });
    canvas.addEventListener("keydown", event => {
        const step = 60 / scale, acts = table({
            ArrowLeft: () => { cx -= step; }, ArrowRight: () => { cx += step; }, ArrowUp: () => { cy -= step; }, ArrowDown: () => { cy += step; },
            "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), "0": all,
            Enter: () => {
                const p = at(width / 2, height / 2, 1e9);
                if (p >= 0)
                    open(p);
            },
        });
        if (!acts[event.key] || event.ctrlKey || event.altKey || event.metaKey)
            return;
        event.preventDefault();
        keyboard = true;
        acts[event.key]();
        draw();
    });
    canvas.addEventListener("focus", () => { keyboard = canvas.matches(":focus-visible"); draw(); });
    canvas.addEventListener("blur", draw);

    const resize = () => {
        const first = width === 0;
        width = canvas.clientWidth;
        height = canvas.clientHeight;
        ratio = devicePixelRatio || 1;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        if (first) {
            all();
            if (wanted !== "") {
                mark = wanted;
                cx = X[mark];
                cy = Y[mark];
                scale *= 6;
            }
        }
        paint();
    };
    const observer = new ResizeObserver(resize);
    observer.observe(canvas);
    addEventListener("themechange", draw);
    App.leave = () => {
        observer.disconnect();
        removeEventListener("themechange", draw);
    };
};
