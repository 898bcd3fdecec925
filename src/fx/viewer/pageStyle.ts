// The style sheet of a graph page, for light and dark mode.
export const PAGE_STYLE = `
:root { color-scheme: light dark; --page: #f5f7fa; --panel: #ffffff; --ink: #1b2430; --soft: #5d6b7c; --line: #d9e0e8; --edge: #9aa8b8; --focus: #2563eb;
  --group: #eef2f7; --added: #15803d; --removed: #b91c1c; --changed: #b45309; --hit: #fde68a; --code: #f2f5f9;
  --placeholder: #dbeafe; --get_attr: #e5e7eb; --call_module: #fef0c7; --call_function: #dcf5e3; --call_method: #ece3fd; --output: #cfe6ee; }
@media (prefers-color-scheme: dark) { :root { --page: #10151c; --panel: #18202a; --ink: #e6ebf2; --soft: #98a6b6; --line: #2b3643; --edge: #5b6a7b; --focus: #60a5fa;
  --group: #1c2531; --added: #4ade80; --removed: #f87171; --changed: #fbbf24; --hit: #854d0e; --code: #121922;
  --placeholder: #1e3a5f; --get_attr: #323b47; --call_module: #4a3c16; --call_function: #1c4429; --call_method: #3b2d5c; --output: #1d4250; } }
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: grid; grid-template: auto 1fr / 1fr 380px; background: var(--page); color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; }
header { grid-column: 1 / 3; display: flex; gap: 12px; align-items: center; padding: 8px 14px; background: var(--panel); border-bottom: 1px solid var(--line); flex-wrap: wrap; }
header h1 { font-size: 16px; margin: 0; } header .count { color: var(--soft); }
header .grow { flex: 1; }
input, button { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: 7px; padding: 4px 10px; }
input { width: 210px; } button { cursor: pointer; } button:hover { border-color: var(--focus); } :focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
#hits { color: var(--soft); min-width: 44px; }
.legend { display: flex; gap: 10px; color: var(--soft); font-size: 12.5px; } .legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 4px; vertical-align: -1px; border: 1px solid var(--line); }
#canvas { position: relative; overflow: hidden; touch-action: none; cursor: grab; min-width: 0; } #canvas.dragging { cursor: grabbing; }
#canvas svg { width: 100%; height: 100%; display: block; }
#canvas .zoom { position: absolute; right: 12px; bottom: 12px; display: flex; flex-direction: column; gap: 6px; } #canvas .zoom button { width: 40px; height: 40px; padding: 0; font-size: 20px; line-height: 1; background: var(--panel); }
aside { background: var(--panel); border-left: 1px solid var(--line); display: flex; flex-direction: column; min-height: 0; }
.tabs { display: flex; border-bottom: 1px solid var(--line); } .tabs button { border: 0; border-radius: 0; background: none; padding: 9px 16px; color: var(--soft); border-bottom: 2px solid transparent; }
.tabs button[aria-selected="true"] { color: var(--ink); border-bottom-color: var(--focus); font-weight: 600; }
#panel, #code { overflow: auto; padding: 14px 16px; flex: 1; min-height: 0; } [hidden] { display: none !important; }
#panel h2 { margin: 0 0 2px; font-size: 17px; overflow-wrap: anywhere; } #panel .sub { color: var(--soft); margin-bottom: 12px; }
dl { display: grid; grid-template-columns: 74px 1fr; gap: 5px 10px; margin: 0 0 12px; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12.5px; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 7px; padding: 8px 10px; margin: 4px 0 12px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace; }
.label { color: var(--soft); font-size: 12.5px; } a.node { color: var(--focus); cursor: pointer; text-decoration: none; } a.node:hover { text-decoration: underline; }
.badge { display: inline-block; border-radius: 20px; padding: 1px 9px; font-size: 12px; border: 1px solid currentColor; } .added { color: var(--added); } .removed { color: var(--removed); } .changed { color: var(--changed); }
#code { padding: 10px 0; font: 12px/1.6 ui-monospace, Menlo, Consolas, monospace; }
#code div { white-space: pre; padding: 0 14px; } #code div.link { cursor: pointer; } #code div.link:hover { background: var(--code); } #code div.current { background: var(--hit); }
#code.diff div::before { content: "  "; text-decoration: none; display: inline-block; width: 2ch; } #code div.added::before { content: "+ "; } #code div.removed { text-decoration: line-through; } #code div.removed::before { content: "- "; } #code div.changed::before { content: "~ "; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink); pointer-events: none; }
svg .title { font-size: 13px; font-weight: 600; } svg .small { font-size: 11px; fill: var(--soft); }
svg .box { stroke: var(--line); } svg g.node { cursor: pointer; } svg g.node:hover .box { stroke: var(--focus); } svg g.current .box { stroke: var(--focus); stroke-width: 2.5; }
svg g.hit .box { stroke: var(--changed); stroke-width: 2.5; } svg g.faded { opacity: 0.22; }
svg g.added .box { stroke: var(--added); stroke-width: 2; } svg g.removed .box { stroke: var(--removed); stroke-width: 2; stroke-dasharray: 5 3; } svg g.removed .title { text-decoration: line-through; } svg g.changed .box { stroke: var(--changed); stroke-width: 2; }
svg .group { fill: var(--group); stroke: var(--line); } svg .head { cursor: pointer; } svg .head:hover text { fill: var(--focus); }
svg path.edge { fill: none; stroke: var(--edge); stroke-width: 1.3; } svg path.near { stroke: var(--focus); stroke-width: 2.2; }
@media (max-width: 760px) { body { grid-template: auto 1fr 40% / 1fr; } header { grid-column: 1; } aside { border-left: 0; border-top: 1px solid var(--line); } .legend { display: none; } }
`
